import assert from "node:assert/strict";
import { test } from "node:test";
import { HoldfastError } from "@holdfast/client";
import type { LockView, NodeReport, NodeStatus } from "@holdfast/client";
import { Latencies } from "../../src/bench/latencies.js";
import { benchText } from "../../src/commands/bench.js";
import { listText, lockText } from "../../src/commands/queries.js";
import { mergeReports, statusText, summaryOf } from "../../src/commands/status.js";
import { progressOf, progressText } from "../../src/commands/upgrade.js";

function statusOf(id: string, role: string, term: number, more: Partial<NodeStatus> = {}): NodeReport {
  const nodes = ["n1", "n2", "n3"].map((each, index) => ({ id: each, client: `127.0.0.1:${7101 + index}` }));
  const status: NodeStatus = {
    ...{
      id,
      role,
      term,
      leader: null,
      commitIndex: 12,
      lastApplied: 11,
      lastIndex: 13,
      snapshotIndex: 0,
      sessions: 2,
      locks: 3,
    },
    ...{ clusterId: "c1", version: "0.1.0", uptimeMs: 61_500.5, nodes },
    ...{ clusterVersion: 1, versions: { min: 1, max: 1 }, ...more },
  };
  return { endpoint: nodes.find((node) => node.id === id)?.client ?? "", status, error: null };
}

function silent(endpoint: string): NodeReport {
  return { endpoint, status: null, error: new HoldfastError("unreachable", `${endpoint}: no answer`) };
}

test("status: leader, and each node; one that is silent has its name from the others", () => {
  const newer = statusOf("n1", "follower", 4, { versions: { min: 1, max: 2 } });
  const status = summaryOf([silent("127.0.0.1:7103"), statusOf("n2", "leader", 4), newer]);
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
      "cluster c1 at version 1: n2 leads in term 4",
      "",
      "NODE  ROLE         TERM  COMMITTED  APPLIED  LAST  SNAPSHOT  SESSIONS  LOCKS  UP   RUNS  CLIENTS",
      "n1    follower        4         12       11    13         0         2      3  61s  1-2   127.0.0.1:7101",
      "n2    leader          4         12       11    13         0         2      3  61s  1     127.0.0.1:7102",
      "n3    unreachable                                                                        127.0.0.1:7103",
      "",
      "127.0.0.1:7103: no answer",
      "",
    ].join("\n"),
  );
});

test("status: a node that waits to be added is joining, and a learner shows how far it is", () => {
  const problem = "127.0.0.1:7103: n3 waits to be added: holdfast member add n3 --peer a:1 --client 127.0.0.1:7103";
  const waiting: NodeReport = {
    endpoint: "127.0.0.1:7103",
    status: null,
    error: new HoldfastError("unreachable", problem),
  };
  const status = summaryOf([statusOf("n1", "leader", 4), statusOf("n2", "learner", 4), waiting]);
  assert.deepEqual(
    status.nodes.map(({ role }) => role),
    ["leader", "learner", "joining"],
  );
  const nodes = status.nodes.map((node) => ({ ...node, percent: node.role === "learner" ? 62 : null }));
  assert.match(statusText({ ...status, nodes }), /^n2 +learner 62 % +4 /m);
});

test("status: a leader of an older term, cut off from the rest, is not the cluster's", () => {
  const deposed = [statusOf("n1", "leader", 4), statusOf("n2", "follower", 5), statusOf("n3", "candidate", 5)];
  assert.equal(summaryOf(deposed).leader, null);
  assert.match(statusText(summaryOf(deposed)), /^cluster c1 at version 1: nobody leads\n/);
  assert.equal(summaryOf([...deposed.slice(0, 2), statusOf("n3", "leader", 5)]).leader, "n3");
});

test("status: an advertised address that can't be reached from here is replaced by the one that was named", () => {
  const named = { ...statusOf("n1", "leader", 4), endpoint: "localhost:7101" };
  const all = [silent("127.0.0.1:7101"), statusOf("n2", "follower", 4), silent("127.0.0.1:7103")];
  const merged = summaryOf(mergeReports([named], all));
  assert.deepEqual(
    merged.nodes.map(({ id, endpoint, role }) => [id, endpoint, role]),
    [
      ["n1", "localhost:7101", "leader"],
      ["n2", "127.0.0.1:7102", "follower"],
      ["n3", "127.0.0.1:7103", "unreachable"],
    ],
  );
});

test("upgrade: who is behind, what comes next, and when all is done", () => {
  const at = (id: string, max: number, clusterVersion = 1) =>
    statusOf(id, "follower", 4, { clusterVersion, versions: { min: 1, max } });
  const half = progressOf(summaryOf([at("n1", 2), at("n2", 1), silent("127.0.0.1:7103")]));
  assert.deepEqual(
    [half.clusterVersion, half.highest, half.isFinalizable, half.nodes.map(({ versions }) => versions?.max ?? null)],
    [1, 2, false, [2, 1, null]],
  );
  assert.equal(
    progressText(half),
    [
      "cluster version: 1",
      "",
      "NODE  RUNS  RELEASE",
      "n1    1-2     0.1.0",
      "n2    1       0.1.0",
      "n3",
      "",
      "not on all nodes yet: n2, n3; until it is finalized, the nodes can go back to the release before",
      "",
    ].join("\n"),
  );
  const ready = progressOf(summaryOf([at("n1", 2), at("n2", 2), at("n3", 2)]));
  assert.equal(ready.isFinalizable, true);
  assert.match(progressText(ready), /all nodes run version 2: holdfast upgrade --finalize raises the cluster to it\n$/);
  const done = progressOf(summaryOf([at("n1", 2, 2), at("n2", 2, 1), at("n3", 2, 2)]));
  assert.deepEqual([done.clusterVersion, done.isFinalizable], [2, false]);
  assert.match(progressText(done), /nothing to finalize\n$/);
  assert.equal(progressOf(summaryOf([silent("127.0.0.1:7101")])).clusterVersion, null);
});

const held: LockView = {
  ...{ name: "doc:42", mode: "exclusive", slots: 0, holderCount: 1, waiterCount: 3, delays: [] },
  holders: [{ session: 7, request: 1, token: 19, slot: null, mode: "exclusive", info: "host:1 \u001b[31mred" }],
  waiters: [{ session: 8, request: 2, mode: "shared", info: "host:2", names: ["doc:42", "doc:43"], reserves: true }],
};

test("ls: a line a lock, and a word when there is none", () => {
  assert.equal(listText([]), "no locks\n");
  const delayed: LockView = {
    ...held,
    name: "x",
    mode: null,
    holders: [],
    holderCount: 0,
    waiterCount: 0,
    delays: [{ index: 5, delayMs: 5_000, slot: null }],
  };
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
  const delayed: LockView = {
    ...held,
    mode: null,
    holders: [],
    holderCount: 0,
    waiters: [],
    waiterCount: 0,
    delays: [{ index: 5, delayMs: 5_000, slot: null }],
  };
  assert.match(lockText("doc:42", delayed), /delayed: 5s in all, since entry 5\n/);
});

test("bench: rates, a table of latencies, failures", () => {
  const latencies = new Latencies();
  for (const ms of [1, 1, 1, 5]) latencies.add(ms);
  const all = latencies.summary();
  const text = benchText({
    ...{ clients: 2, connections: 1, locks: 1, seconds: 2, cycles: 4, cyclesPerSecond: 2 },
    ...{ acquire: all, release: all, cycle: all, errors: { no_quorum: 3 } },
  });
  const [top, , head, acquire] = text.split("\n");
  assert.equal(top, "2 clients on 1 connections: 4 cycles in 2.0 s, 2 a second");
  assert.equal(head, "MS       MEAN   P50   P90   P99  P99.9   MAX");
  assert.match(acquire ?? "", /^acquire {2}2\.00 {2}1\.0\d {2}5\.00 {2}5\.00 {3}5\.00 {2}5\.00$/);
  assert.match(text, /^3 cycles failed: no_quorum$/m);
});
