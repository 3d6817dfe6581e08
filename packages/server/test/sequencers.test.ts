/** Sequencers of whole clusters, in virtual time: keys over elections, restarts, snapshots and upgrades. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { encodeCommand, parseSequencer } from "@holdfast/wire";
import type { Query, QueryResult } from "@holdfast/wire";
import { Ed25519 } from "../src/ed25519.js";
import { VirtualCluster } from "./virtual/virtual-cluster.js";
import type { VirtualClient, VirtualNode } from "./virtual/virtual-cluster.js";

const key = "1".repeat(32);
const older = { min: 1, max: 1 };
const newer = { min: 1, max: 2 };

async function answer(client: VirtualClient, id: number, query: Query): Promise<QueryResult | string> {
  client.sendAll({ kind: "query", id, query });
  const message = await client.expectAny((each) => {
    return (each.kind === "answer" || each.kind === "refused") && each.id === id;
  });
  if (message.kind === "answer") return message.result;
  assert.ok(message.kind === "refused");
  return message.refusal.code === "incompatible" ? message.refusal.problem : message.refusal.code;
}

async function rotate(client: VirtualClient, id: number): Promise<string> {
  client.sendAll({ kind: "rotateKey", id, principal: "ada" });
  return (await client.expect("keyRotated", (each) => each.id === id)).key;
}

/** The session's hold on "a". */
async function hold(client: VirtualClient): Promise<{ readonly session: number; readonly token: number }> {
  client.sendAll({ kind: "command", payload: encodeCommand({ kind: "openSession", key, ttlMs: 60_000, info: "" }) });
  const { session } = await client.expect("sessionOpened");
  const terms = { mode: "exclusive", slots: 0, wait: true, lockDelayMs: 0, maxHoldMs: 0, info: "" } as const;
  const request = { session, request: 1, settled: 1, seen: [] };
  client.sendAll({
    kind: "command",
    payload: encodeCommand({ kind: "acquire", ...request, names: ["a"], ...terms }),
  });
  const { outcome } = await client.expect("outcome", (each) => each.request === 1);
  assert.ok(outcome.kind === "granted");
  return { session, token: outcome.grants[0]?.token ?? 0 };
}

async function sign(client: VirtualClient, id: number, session: number): Promise<string> {
  const result = await answer(client, id, { kind: "sequencer", session, key, of: 1, name: "a" });
  assert.ok(
    typeof result !== "string" && result.kind === "sequencer" && result.sequencer !== null,
    JSON.stringify(result),
  );
  return result.sequencer;
}

async function verdictOn(client: VirtualClient, id: number, sequencer: string): Promise<string> {
  const result = await answer(client, id, { kind: "check", sequencer });
  if (typeof result === "string") return result;
  assert.ok(result.kind === "check");
  return `${result.verdict} ${result.token}`;
}

const keysOf = (cluster: VirtualCluster) =>
  cluster.nodes.map(({ host }) =>
    host
      ?.publicKeys()
      .map(({ id }) => id)
      .join(" "),
  );

async function clusterWithKey(options = {}): Promise<VirtualCluster> {
  const cluster = new VirtualCluster(options);
  await cluster.leader();
  await cluster.clock.until("there is a key", () => keysOf(cluster).every((ids) => ids !== ""), 10_000);
  assert.equal(new Set(keysOf(cluster)).size, 1);
  return cluster;
}

describe("a new cluster", () => {
  it("has a key, and signs what a session holds, for that session alone", async () => {
    const cluster = await clusterWithKey();
    const client = cluster.client(await cluster.leader());
    const { session, token } = await hold(client);
    const sequencer = await sign(client, 1, session);
    const { keyId, signed, signature, ...claim } = parseSequencer(sequencer);
    assert.deepEqual(claim, { name: "a", mode: "exclusive", slot: null, token });
    const publicKeys = cluster.nodes[2]?.host?.publicKeys() ?? [];
    assert.equal(publicKeys[0]?.id, keyId);
    assert.equal(new Ed25519().verify(signed, signature, publicKeys[0]?.publicKey ?? ""), true);
    const others: Query[] = [
      { kind: "sequencer", session, key: "2".repeat(32), of: 1, name: "a" },
      { kind: "sequencer", session, key, of: 2, name: "a" },
      { kind: "sequencer", session, key, of: 1, name: "b" },
    ];
    for (const [at, query] of others.entries()) {
      const result = await answer(client, 10 + at, query);
      assert.ok(typeof result !== "string" && result.kind === "sequencer" && result.sequencer === null);
    }
    assert.deepEqual(cluster.errors, []);
  });

  it("says whether a holding goes on", async () => {
    const cluster = await clusterWithKey();
    const client = cluster.client(await cluster.leader());
    const { session, token } = await hold(client);
    const sequencer = await sign(client, 1, session);
    assert.equal(await verdictOn(client, 2, sequencer), `current ${token}`);
    assert.equal(await verdictOn(client, 3, sequencer.replace(`.${token}.`, `.${token + 1}.`)), "forged null");
    assert.equal(
      await verdictOn(client, 4, sequencer.replace(/\.[0-9a-f]{16}\./, `.${"0".repeat(16)}.`)),
      "unknown_key null",
    );
    assert.equal(await verdictOn(client, 5, "holdfast1.x"), "malformed null");
    const release = { kind: "release", session, request: 2, settled: 1, seen: [], of: 1, afterMs: 0 } as const;
    client.sendAll({ kind: "command", payload: encodeCommand(release) });
    await client.expect("outcome", (each) => each.request === 2);
    assert.equal(await verdictOn(client, 6, sequencer), "over null");
    const follower = cluster.nodes.find((node) => cluster.leaders()[0] !== node) as VirtualNode;
    assert.equal(await verdictOn(cluster.client(follower), 7, sequencer), "not_leader");
  });

  it("keeps its key over elections, restarts and snapshots", async () => {
    const cluster = await clusterWithKey({ snapshotEntries: 5, recordsPerPiece: 2 });
    const [before] = keysOf(cluster);
    const { session } = await hold(cluster.client(await cluster.leader()));
    for (let round = 0; round < 4; round += 1) {
      const leader = await cluster.leader();
      cluster.kill(leader);
      await cluster.leader();
      cluster.start(leader);
      await cluster.converged();
    }
    assert.deepEqual(keysOf(cluster), [before, before, before]);
    const client = cluster.client(await cluster.leader());
    assert.equal(parseSequencer(await sign(client, 1, session)).keyId, before);
    assert.deepEqual(cluster.errors, []);
  });

  it("takes another key when it is asked to, and believes the former seven", async () => {
    const cluster = await clusterWithKey();
    const [first] = keysOf(cluster);
    const client = cluster.client(await cluster.leader());
    const { session, token } = await hold(client);
    const sequencer = await sign(client, 1, session);
    const second = await rotate(client, 2);
    assert.equal(parseSequencer(await sign(client, 3, session)).keyId, second);
    await cluster.converged();
    assert.deepEqual(new Set(keysOf(cluster)), new Set([`${second} ${first}`]));
    for (let round = 0; round < 6; round += 1) await rotate(client, 10 + round);
    assert.equal(await verdictOn(client, 20, sequencer), `current ${token}`);
    await rotate(client, 21);
    assert.equal(await verdictOn(client, 22, sequencer), "unknown_key null");
    assert.deepEqual(cluster.errors, []);
  });
});

describe("an upgrade to the version that brings keys", () => {
  it("signs nothing before it is finalized, and has a key from then on", async () => {
    const cluster = new VirtualCluster({ versions: older });
    const { session, token } = await hold(cluster.client(await cluster.leader()));
    for (const node of cluster.nodes) {
      cluster.kill(node);
      node.versions = newer;
      cluster.start(node);
      await cluster.leader();
    }
    await cluster.clock.pass(5_000);
    const client = cluster.client(await cluster.leader());
    const hint = "a sequencer needs cluster version 2, and the cluster is at 1: run holdfast upgrade --finalize";
    assert.equal(await answer(client, 1, { kind: "sequencer", session, key, of: 1, name: "a" }), hint);
    assert.equal(await answer(client, 2, { kind: "check", sequencer: "holdfast1.x" }), hint);
    client.sendAll({ kind: "rotateKey", id: 3, principal: "ada" });
    const { refusal } = await client.expect("refused", ({ id }) => id === 3);
    assert.match(refusal.code === "incompatible" ? refusal.problem : refusal.code, /^a key for sequencers needs/);
    const keys = await answer(client, 4, { kind: "keys" });
    assert.ok(typeof keys !== "string" && keys.kind === "keys" && keys.keys.length === 0);
    assert.deepEqual(keysOf(cluster), ["", "", ""]);
    assert.equal(client.closed, null);

    client.sendAll({ kind: "finalize", id: 5 });
    await client.expect("finalized", ({ id }) => id === 5);
    const sequencer = await sign(client, 6, session);
    assert.equal(await verdictOn(client, 7, sequencer), `current ${token}`);
    await cluster.converged();
    assert.equal(new Set(keysOf(cluster)).size, 1);
    assert.deepEqual(cluster.errors, []);
  });
});
