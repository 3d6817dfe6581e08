/** Rolling upgrades over virtual nodes: who may raise the cluster version, who is stopped by it, what is refused before it. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { VersionError } from "@holdfast/lock";
import type { VersionRange } from "@holdfast/lock";
import { encodeCommand, UnknownCommandError } from "@holdfast/wire";
import { ClusterVersions } from "../src/cluster-versions.js";
import { endingFor } from "../src/endings.js";
import { configurationOf } from "./helpers.js";
import { electionTimeoutMs, VirtualCluster } from "./virtual/virtual-cluster.js";
import type { VirtualClient, VirtualNode } from "./virtual/virtual-cluster.js";

const older: VersionRange = { min: 1, max: 1 };
const newer: VersionRange = { min: 1, max: 2 };

describe("the gate", () => {
  function versionsOf(
    met: Readonly<Record<string, VersionRange>>,
    changes: { clusterVersion?: number; isUntouched?: boolean; range?: VersionRange } = {},
  ) {
    const { clusterVersion = 1, isUntouched = false, range = newer } = changes;
    const machine = { clusterVersion, isUntouched };
    const clock = { nowMs: 50_000 };
    const proposed: number[] = [];
    const refusals: (() => void)[] = [];
    const versions = new ClusterVersions({
      self: "n1",
      range,
      waitMs: 2_000,
      nowMs: () => clock.nowMs,
      configuration: () => ({
        ...configurationOf({ n1: "a", n2: "b" }),
        learners: configurationOf({ n3: "c" }).voters,
      }),
      met: () => new Map(Object.entries(met).map(([id, each]) => [id, { versions: each }])),
      machine: () => machine,
      propose: (command, onRefused) => {
        if (command.kind === "setClusterVersion") proposed.push(command.version);
        refusals.push(onRefused);
      },
      logger: { debug() {}, info() {}, warn() {}, error() {} },
    });
    return { versions, machine, clock, proposed, refusals };
  }
  const problemOf = (answer: unknown): string => (answer as { problem: string }).problem;

  it("lets through what the cluster has reached, and says who holds back the rest", () => {
    assert.equal(versionsOf({ n2: newer, n3: newer }).versions.gate("acquire"), null);
    assert.equal(versionsOf({}, { clusterVersion: 2 }).versions.gate("acquire", 2), null);
    const gate = (met: Readonly<Record<string, VersionRange>>) => versionsOf(met).versions.gate("acquire", 2)?.problem;
    assert.equal(
      gate({ n2: newer, n3: newer }),
      "acquire needs cluster version 2, and the cluster is at 1: run holdfast upgrade --finalize",
    );
    assert.match(gate({ n2: older, n3: newer }) ?? "", /at 1: n2 runs version 1 at most$/);
    assert.match(gate({ n3: older }) ?? "", /at 1: n2 can't be reached, n3 runs version 1 at most$/);
  });

  it("raises to the highest that a member runs, and only when all do: learners too", () => {
    assert.equal(versionsOf({ n2: newer, n3: newer }).versions.target(), 2);
    assert.equal(versionsOf({ n2: newer, n3: newer }, { clusterVersion: 2 }).versions.target(), 2);
    assert.equal(versionsOf({ n2: older, n3: older }, { range: older }).versions.target(), 1);
    assert.equal(versionsOf({ n2: newer, n3: newer, n9: { min: 1, max: 7 } }).versions.target(), 2, "a stranger");
    const blocked: [Readonly<Record<string, VersionRange>>, VersionRange, RegExp][] = [
      [{ n2: newer, n3: older }, newer, /at version 1 and can't be raised to 2: n3 runs version 1 at most$/],
      [{ n2: newer }, newer, /can't be raised to 2: n3 can't be reached$/],
      [{ n2: newer, n3: newer }, older, /can't be raised to 2: n1 runs version 1 at most$/],
      [{ n2: older }, older, /at version 1 and can't be raised: n3 can't be reached$/],
    ];
    for (const [met, range, expected] of blocked) {
      assert.match(problemOf(versionsOf(met, { range }).versions.target()), expected);
    }
  });

  it("a new cluster begins at the highest version of its nodes, an old one doesn't move by itself", () => {
    const fresh = versionsOf({ n2: newer, n3: newer }, { isUntouched: true });
    fresh.versions.maybeBegin();
    fresh.versions.maybeBegin();
    assert.deepEqual(fresh.proposed, [2], "once");
    fresh.refusals[0]?.();
    fresh.versions.maybeBegin();
    assert.deepEqual(fresh.proposed, [2, 2], "again after a refusal");
    for (const quiet of [
      versionsOf({ n2: newer, n3: newer }),
      versionsOf({ n2: newer, n3: older }, { isUntouched: true }),
      versionsOf({ n2: newer }, { isUntouched: true }),
      versionsOf({ n2: newer, n3: newer }, { isUntouched: true, clusterVersion: 2 }),
    ]) {
      quiet.versions.maybeBegin();
      assert.deepEqual(quiet.proposed, []);
    }
  });

  it("has the first session of a new cluster wait: until it is raised, or a while, and not for who runs another release", () => {
    const fresh = versionsOf({ n2: newer }, { isUntouched: true });
    assert.equal(fresh.versions.isBeginning, true, "n3 can't be reached yet");
    fresh.clock.nowMs += 1_999;
    assert.equal(fresh.versions.isBeginning, true);
    fresh.clock.nowMs += 1;
    assert.equal(fresh.versions.isBeginning, false);
    fresh.versions.onLeadershipLost();
    assert.equal(fresh.versions.isBeginning, true, "a later leadership waits anew");
    const met = versionsOf({ n2: newer, n3: newer }, { isUntouched: true });
    assert.equal(met.versions.isBeginning, true);
    met.versions.maybeBegin();
    assert.equal(met.versions.isBeginning, false, "whatever comes now stands behind it in the log");
    for (const quiet of [
      versionsOf({ n2: newer }),
      versionsOf({ n2: older }, { isUntouched: true }),
      versionsOf({ n2: newer, n3: { min: 1, max: 7 } }, { isUntouched: true }),
      versionsOf({}, { isUntouched: true, clusterVersion: 2 }),
    ]) {
      assert.equal(quiet.versions.isBeginning, false);
    }
  });
});

const openCommand = { kind: "openSession", key: "1".repeat(32), ttlMs: 60_000, info: "" } as const;

async function open(client: VirtualClient): Promise<number> {
  client.sendAll({ kind: "command", payload: encodeCommand(openCommand) });
  return (await client.expect("sessionOpened")).session;
}

function restart(cluster: VirtualCluster, node: VirtualNode, versions: VersionRange): void {
  if (node.stopped === null) cluster.kill(node);
  node.versions = versions;
  cluster.start(node);
}

async function restartAll(cluster: VirtualCluster, versions: VersionRange): Promise<void> {
  for (const node of cluster.nodes) {
    restart(cluster, node, versions);
    await cluster.leader();
  }
  await cluster.converged();
}

/** An older cluster in which something was done. */
async function usedCluster(): Promise<VirtualCluster> {
  const cluster = new VirtualCluster({ versions: older, snapshotEntries: 5, recordsPerPiece: 2 });
  await open(cluster.client(await cluster.leader()));
  await cluster.converged();
  return cluster;
}

async function finalize(cluster: VirtualCluster, id = 1): Promise<number | string> {
  const client = cluster.client(await cluster.leader());
  client.sendAll({ kind: "finalize", id });
  const isAnswer = (): boolean => client.received.some(({ kind }) => kind === "finalized" || kind === "refused");
  await cluster.clock.until("an answer", isAnswer, 10_000);
  for (const message of client.received) {
    if (message.kind === "finalized") return message.version;
    if (message.kind !== "refused") continue;
    return message.refusal.code === "incompatible" ? message.refusal.problem : message.refusal.code;
  }
  return "";
}

const versionsOf = (cluster: VirtualCluster) => cluster.nodes.map(({ host }) => host?.clusterVersion);

describe("an upgrade", () => {
  it("is refused while a node is older or away, finalized when all are newer, and goes no further", async () => {
    const cluster = await usedCluster();
    assert.equal(await finalize(cluster), 1, "nothing to do");
    const [first, second, third] = cluster.nodes as [VirtualNode, VirtualNode, VirtualNode];
    restart(cluster, first, newer);
    assert.match(String(await finalize(cluster)), /can't be raised to 2: n2 runs version 1 at most, n3 runs version 1/);
    restart(cluster, second, newer);
    assert.match(String(await finalize(cluster)), /can't be raised to 2: n3 runs version 1 at most$/);
    cluster.kill(third);
    assert.match(String(await finalize(cluster)), /can't be raised to 2: n3 can't be reached$/);
    third.versions = newer;
    cluster.start(third);
    await cluster.clock.pass(2_000);
    assert.deepEqual(new Set(versionsOf(cluster)), new Set([1]), "it doesn't finalize itself");
    assert.equal(await finalize(cluster), 2);
    assert.equal(await finalize(cluster), 2, "again");
    await cluster.converged();
    assert.deepEqual(versionsOf(cluster), [2, 2, 2]);
    await restartAll(cluster, newer);
    assert.deepEqual(versionsOf(cluster), [2, 2, 2], "from the log or the snapshot");
    assert.deepEqual(cluster.errors, []);
  });

  it("can be taken back until it is finalized: snapshots and entries of the newer release are the older's", async () => {
    const cluster = await usedCluster();
    await restartAll(cluster, newer);
    const client = cluster.client(await cluster.leader());
    const session = await open(client);
    for (let at = 0; at < 20; at += 1) client.sendAll({ kind: "command", payload: encodeCommand(openCommand) });
    await cluster.converged();
    const hash = cluster.nodes[0]?.host?.stateHash();
    await restartAll(cluster, older);
    assert.equal(cluster.nodes[0]?.host?.stateHash(), hash);
    assert.equal(await open(cluster.client(await cluster.leader())), session, "the same key, the same session");
    assert.deepEqual(cluster.errors, []);
  });

  it("stops an older node that comes back after it, which answers nobody any more", async () => {
    const cluster = await usedCluster();
    await restartAll(cluster, newer);
    assert.equal(await finalize(cluster), 2);
    await cluster.converged();
    const leader = await cluster.leader();
    const other = cluster.nodes.find((node) => node !== leader) as VirtualNode;
    cluster.kill(other);
    other.versions = older;
    try {
      cluster.start(other);
      await cluster.clock.until("it stops", () => other.stopped !== null, 10_000);
      assert.ok(other.stopped?.kind === "internal" && other.stopped.error instanceof VersionError);
    } catch (error) {
      // Its snapshot has the version already: it doesn't come to that.
      assert.ok(error instanceof VersionError, String(error));
    }
    assert.ok(
      cluster.errors.every((text) => text.includes("VersionError")),
      cluster.errors.join(),
    );
    assert.equal(typeof (await open(cluster.client(await cluster.leader()))), "number", "the others go on");
  });

  it("a majority of older nodes can't go on without the others either", async () => {
    const cluster = await usedCluster();
    await restartAll(cluster, newer);
    assert.equal(await finalize(cluster), 2);
    await cluster.converged();
    for (const node of cluster.nodes) cluster.kill(node);
    for (const node of cluster.nodes.slice(0, 2)) {
      node.versions = older;
      try {
        cluster.start(node);
      } catch (error) {
        assert.ok(error instanceof VersionError, String(error));
      }
    }
    await cluster.clock.pass(5_000);
    const ready = cluster.nodes.filter((node) => node.stopped === null && node.host?.health().isReady === true);
    assert.deepEqual(ready, []);
    for (const node of cluster.nodes) restart(cluster, node, newer);
    await cluster.leader();
    await cluster.converged();
    assert.deepEqual(versionsOf(cluster), [2, 2, 2], "nothing was lost");
  });

  it("a new cluster of newer nodes is at the newer version before its first session", async () => {
    const cluster = new VirtualCluster({ versions: newer });
    await cluster.leader();
    await cluster.clock.until("it is raised", () => versionsOf(cluster).every((version) => version === 2), 5_000);
    assert.deepEqual(cluster.errors, []);
  });
});

/** Two of three nodes run. */
async function halfBegun(): Promise<{ cluster: VirtualCluster; third: VirtualNode; client: VirtualClient }> {
  const cluster = new VirtualCluster({ versions: newer });
  const third = cluster.node("n3");
  cluster.kill(third);
  const client = cluster.client(await cluster.leader());
  for (let times = 0; times < 2; times += 1) {
    client.sendAll({ kind: "command", payload: encodeCommand(openCommand) });
  }
  await cluster.clock.pass(electionTimeoutMs);
  assert.ok(client.received.every(({ kind }) => kind !== "sessionOpened"));
  return { cluster, third, client };
}

describe("the first session of a new cluster", () => {
  it("waits for a member that comes a little later, and then the version is raised before it", async () => {
    const { cluster, third, client } = await halfBegun();
    cluster.start(third);
    const { session } = await client.expect("sessionOpened");
    await cluster.converged();
    assert.deepEqual(versionsOf(cluster), [2, 2, 2]);
    assert.equal(await open(cluster.client(await cluster.leader())), session, "it was opened once");
    assert.deepEqual(cluster.errors, []);
  });

  it("waits no longer than four election timeouts for one that stays away", async () => {
    const { cluster, third, client } = await halfBegun();
    const askedMs = cluster.clock.nowMs;
    await client.expect("sessionOpened");
    assert.ok(cluster.clock.nowMs - askedMs < 4 * electionTimeoutMs);
    cluster.start(third);
    await cluster.converged();
    assert.deepEqual(versionsOf(cluster), [1, 1, 1], "there is something to go back to");
    assert.deepEqual(cluster.errors, []);
  });

  it("is asked for again at the next leader when this one is gone", async () => {
    const { cluster, third } = await halfBegun();
    const leader = await cluster.leader();
    cluster.start(third);
    cluster.kill(leader);
    const next = await cluster.leader();
    const client = cluster.client(next);
    client.sendAll({ kind: "command", payload: encodeCommand(openCommand) });
    cluster.start(leader);
    await client.expect("sessionOpened");
    await cluster.converged();
    assert.equal(new Set(versionsOf(cluster)).size, 1);
  });
});

describe("a command of a newer release", () => {
  it("in the log stops a node at its entry: nothing after it is applied, in this life or a later one", async () => {
    const cluster = await usedCluster();
    const leader = await cluster.leader();
    const payload = encodeCommand(openCommand);
    payload[1] = 100;
    const next = { ...openCommand, key: "2".repeat(32) };
    leader.host?.["proposals"].proposeClients(openCommand, payload, false, () => undefined);
    leader.host?.["proposals"].proposeClients(next, encodeCommand(next), false, () => undefined);
    leader.host?.start();
    const ended = (): VirtualNode[] => cluster.nodes.filter(({ stopped }) => stopped !== null);
    await cluster.clock.until("the leader stops", () => ended().length > 0, 10_000);
    for (const node of ended()) restart(cluster, node, older);
    await cluster.clock.until("the next leader stops too", () => ended().length > 0, 30_000);
    for (const { stopped } of ended()) {
      assert.ok(stopped?.kind === "internal" && stopped.error instanceof UnknownCommandError);
      assert.equal(endingFor(stopped.error).exit, "newerFormat");
    }
    for (const { host } of cluster.nodes) assert.ok((host?.report.figures().sessions ?? 0) < 2, "the entry after it");
  });

  it("is refused by an older leader for that request alone, and sent on by another node", async () => {
    const cluster = await usedCluster();
    const leader = await cluster.leader();
    const client = cluster.client(leader);
    const session = await open(client);
    const payload = encodeCommand({ kind: "setInfo", session, request: 7, settled: 1, seen: [], of: 1, info: "" });
    payload[1] = 100;
    client.sendAll({ kind: "command", payload });
    const { refusal } = await client.expect("refused", ({ request }) => request === 7);
    assert.ok(refusal.code === "incompatible" && /doesn't know commands of kind 100/.test(refusal.problem));
    assert.equal(client.closed, null);
    assert.equal(await open(client), session, "the connection goes on");
    const follower = cluster.nodes.find((node) => node !== leader) as VirtualNode;
    const strayed = cluster.client(follower);
    strayed.sendAll({ kind: "command", payload });
    assert.equal((await strayed.expect("refused", ({ request }) => request === 7)).refusal.code, "not_leader");
  });
});
