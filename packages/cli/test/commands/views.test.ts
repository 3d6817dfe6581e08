import assert from "node:assert/strict";
import { test } from "node:test";
import { HoldfastError } from "@holdfast/client";
import type { LockView, NodeReport, NodeStatus } from "@holdfast/client";
import { listText, lockText } from "../../src/commands/queries.js";
import { statusText, summaryOf } from "../../src/commands/status.js";

function statusOf(id: string, role: string, term: number, more: Partial<NodeStatus> = {}): NodeReport {
  const nodes = ["n1", "n2", "n3"].map((each, index) => ({ id: each, client: `127.0.0.1:${7101 + index}` }));
  const status: NodeStatus = {
    ...{ id, role, term, leader: null, commitIndex: 12, lastApplied: 11, lastIndex: 13, snapshotIndex: 0, sessions: 2, locks: 3 },
    ...{ clusterId: "c1", version: "0.1.0", uptimeMs: 61_500.5, nodes, ...more },
  };
  return { endpoint: nodes.find((node) => node.id === id)?.client ?? "", status, error: null };
}

function silent(endpoint: string): NodeReport {
  return { endpoint, status: null, error: new HoldfastError("unreachable", `${endpoint}: no answer`) };
}

test("status: leader, and each node; one that is silent has its name from the others", () => {
  const status = summaryOf([silent("127.0.0.1:7103"), statusOf("n2", "leader", 4), statusOf("n1", "follower", 4)]);
  assert.equal(status.leader, "n2");
  assert.deepEqual(
    status.nodes.map(({ id, role, term, commitIndex }) => ({ id, role, term, commitIndex })),
    [
      { id: "n1", role: "follower", term: 4, commitIndex: 12 },
      { id: "n2", role: "leader", term: 4, commitIndex: 12 },
      { id: "n3", role: "unreachable", term: null, commitIndex: null },
    ],
  );
  assert.equal(
    statusText(status),
    [
      "cluster c1: n2 leads in term 4",
      "",
      "NODE  ROLE         TERM  COMMITTED  APPLIED  LAST  SNAPSHOT  SESSIONS  LOCKS  UP   CLIENTS",
      "n1    follower        4         12       11    13         0         2      3  61s  127.0.0.1:7101",
      "n2    leader          4         12       11    13         0         2      3  61s  127.0.0.1:7102",
      "n3    unreachable                                                                  127.0.0.1:7103",
      "",
      "127.0.0.1:7103: no answer",
      "",
    ].join("\n"),
  );
});

test("status: a leader of an older term, cut off from the rest, is not the cluster's", () => {
  const deposed = [statusOf("n1", "leader", 4), statusOf("n2", "follower", 5), statusOf("n3", "candidate", 5)];
  assert.equal(summaryOf(deposed).leader, null);
  assert.match(statusText(summaryOf(deposed)), /^cluster c1: nobody leads\n/);
  assert.equal(summaryOf([...deposed.slice(0, 2), statusOf("n3", "leader", 5)]).leader, "n3");
});

const held: LockView = {
  ...{ name: "doc:42", mode: "exclusive", slots: 0, waiterCount: 3, delays: [] },
  holders: [{ session: 7, request: 1, token: 19, slot: null, mode: "exclusive", info: "host:1 \u001b[31mred" }],
  waiters: [{ session: 8, request: 2, mode: "shared", info: "host:2", names: ["doc:42", "doc:43"], reserves: true }],
};

test("ls: a line a lock, and a word when there is none", () => {
  assert.equal(listText([]), "no locks\n");
  const delayed: LockView = { ...held, name: "x", mode: null, holders: [], waiterCount: 0, delays: [{ index: 5, delayMs: 5_000, slot: null }] };
  assert.equal(
    listText([held, delayed]),
    [
      "NAME    STATE      TOKEN  HOLDERS  WAITERS  HELD BY",
      "doc:42  exclusive     19        1        3  host:1 \\u001b[31mred",
      "x       delayed                 0        0",
      "",
    ].join("\n"),
  );
});

test("show: holders, waiters with what else they wait for, delays; free", () => {
  assert.equal(
    lockText("doc:42", held),
    [
      "name:  doc:42",
      "state: exclusive",
      "",
      "TOKEN  MODE       PLACE  SESSION  HELD BY",
      "   19  exclusive               7  host:1 \\u001b[31mred",
      "",
      "WAITS FOR  SESSION  RESERVES  AND FOR  WAITER",
      "shared           8  yes       doc:43   host:2",
      "and 2 more waiters",
      "",
    ].join("\n"),
  );
  assert.equal(lockText("a", null), "name:  a\nstate: free\n");
  const delayed: LockView = { ...held, mode: null, holders: [], waiters: [], waiterCount: 0, delays: [{ index: 5, delayMs: 5_000, slot: null }] };
  assert.match(lockText("doc:42", delayed), /delayed: 5s in all, since entry 5\n/);
});
