/** Links cut in one or both directions. Where some node can exchange messages with a majority, one leader is stable. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Cluster, generousLimits } from "./support/cluster.js";
import { configurationOf } from "./support/codec.js";

const electionTimeoutMsMin = 500;

function clusterOf(ids: readonly string[], seed: number): Cluster {
  const cluster = new Cluster({
    ids,
    configuration: configurationOf(ids),
    seed,
    electionTimeoutMsMin,
    heartbeatMs: 100,
    diskStallMs: 1_000,
    limits: generousLimits,
  });
  assert.ok(cluster.run(4 * electionTimeoutMsMin, () => cluster.leader !== null));
  cluster.run(electionTimeoutMsMin);
  return cluster;
}

/** Whether `id` exchanges messages with a majority, itself included. */
function reachesMajority(cluster: Cluster, id: string): boolean {
  const ids = [...cluster.nodes.keys()];
  const peers = ids.filter(
    (other) => other === id || !(cluster.cut.has(`${id}>${other}`) || cluster.cut.has(`${other}>${id}`)),
  );
  return peers.length * 2 > ids.length;
}

function leaders(cluster: Cluster): string[] {
  return cluster.upNodes
    .filter((node) => node.raft.role === "leader")
    .map((node) => `${node.id} in term ${node.raft.term}`);
}

function checkStable(cluster: Cluster, name: string): void {
  const ids = [...cluster.nodes.keys()];
  const isElectable = ids.some((id) => reachesMajority(cluster, id));
  cluster.run(10 * electionTimeoutMsMin);
  const before = leaders(cluster);
  cluster.run(3 * electionTimeoutMsMin);
  assert.deepEqual(leaders(cluster), before, `${name}: nobody is disturbed`);
  assert.equal(before.length, isElectable ? 1 : 0, `${name}: ${before.join(", ")}`);
  const { leader } = cluster;
  if (leader === null) return;
  const index = leader.raft.lastIndex + 1;
  cluster.propose(leader.id, "x");
  cluster.settle();
  assert.equal(leader.raft.commitIndex, index, `${name}: the leader commits`);
}

function pairsOf<T>(list: readonly T[]): [T, T][] {
  return list.flatMap((a, at) => list.slice(at + 1).map((b): [T, T] => [a, b]));
}

test("three nodes: every combination of cut directions", () => {
  const ids = ["n1", "n2", "n3"];
  const links = pairsOf(ids).flatMap(([a, b]) => [`${a}>${b}`, `${b}>${a}`]);
  for (let bits = 0; bits < 2 ** links.length; bits += 1) {
    const cluster = clusterOf(ids, bits + 1);
    const cut = links.filter((_, at) => (bits >> at) % 2 === 1);
    for (const link of cut) cluster.cut.add(link);
    checkStable(cluster, `cut ${cut.join(" ")}`);
  }
});

test("five nodes: every direction, every link, and every pair of links", () => {
  const ids = ["n1", "n2", "n3", "n4", "n5"];
  const links = pairsOf(ids).map(([a, b]) => [`${a}>${b}`, `${b}>${a}`]);
  const cuts = [...links.flat().map((link) => [link]), ...links, ...pairsOf(links).map((pair) => pair.flat())];
  for (const [at, cut] of cuts.entries()) {
    const cluster = clusterOf(ids, at + 1);
    for (const link of cut) cluster.cut.add(link);
    checkStable(cluster, `cut ${cut.join(" ")}`);
  }
});

test("five nodes: all reach only one (quorum loss with a bridge)", () => {
  const ids = ["n1", "n2", "n3", "n4", "n5"];
  for (const bridge of ids) {
    const cluster = clusterOf(ids, 7);
    for (const [a, b] of pairsOf(ids)) if (a !== bridge && b !== bridge) cluster.cut.add(`${a}>${b}`).add(`${b}>${a}`);
    checkStable(cluster, `bridge ${bridge}`);
    assert.equal(cluster.leader?.id, bridge);
  }
});

test("links that flap raise terms slowly, and leave a leader behind", () => {
  const ids = ["n1", "n2", "n3"];
  const cluster = clusterOf(ids, 3);
  const { term } = cluster.leader?.raft ?? { term: 0 };
  const victim = cluster.leader?.id ?? "";
  for (let round = 0; round < 20; round += 1) {
    for (const other of ids) cluster.cut.add(`${victim}>${other}`).add(`${other}>${victim}`);
    cluster.run(1.5 * electionTimeoutMsMin);
    cluster.cut.clear();
    cluster.run(electionTimeoutMsMin);
  }
  assert.ok((cluster.leader?.raft.term ?? 0) - term <= 20, "less than one term in an election timeout");
  checkStable(cluster, "after flapping");
});
