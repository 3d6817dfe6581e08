/** The upgrade to the cluster version that brings keys for sequencers: nothing is signed before its end (former-release.patch). */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Holdfast, Lock } from "@holdfast/client";
import { verifySequencer } from "@holdfast/fence";
import type { PublicKey } from "@holdfast/fence";
import { runCli } from "../cli/cli-process.js";
import { holdfastBin, statusOf, TestCluster } from "../harness/cluster.js";
import type { TestNode } from "../harness/cluster.js";
import { buildNextRelease } from "../harness/next-release.js";
import type { NextRelease } from "../harness/next-release.js";
import { until } from "../harness/until.js";

let former: NextRelease;
let cluster: TestCluster;
let holdfast: Holdfast;
let held: Lock;
let environment: Record<string, string> = {};

before(async () => {
  former = await buildNextRelease("test/cluster/former-release.patch");
  cluster = await TestCluster.create({ limits: { snapshotEntries: 40, trailingEntriesMax: 10 } });
  for (const node of cluster.nodes) {
    node.bin = former.bin;
    node.start();
  }
  await cluster.leader();
  holdfast = await cluster.connect({ ttlMs: 60_000 });
  held = await holdfast.acquire("held");
  environment = { HOLDFAST_ENDPOINTS: cluster.endpoints.join(",") };
});
after(async () => {
  await cluster?.close();
  former?.remove();
});

async function restart(node: TestNode, bin: string): Promise<void> {
  node.signal("SIGTERM");
  await node.exited();
  node.bin = bin;
  node.start();
  await until(`${node.id} is back`, async () => {
    const [own, leading] = await Promise.all([statusOf(node), cluster.leader().then(statusOf)]);
    return own !== null && leading !== null && own.leader !== null && own.lastApplied >= leading.lastApplied;
  });
}

async function keysAt(node: TestNode): Promise<readonly PublicKey[]> {
  const response = await fetch(`http://${node.endpoint}/v1/keys`);
  return ((await response.json()) as { readonly keys: readonly PublicKey[] }).keys;
}

/** Enough for a snapshot. */
async function work(): Promise<void> {
  for (let count = 0; count < 30; count += 1) await (await holdfast.acquire("other")).release();
}

/** What a sequencer is refused with; "signed" when it is not. */
async function trySigning(): Promise<string> {
  try {
    await held.sequencer();
    return "signed";
  } catch (error) {
    const { code, message } = error as { readonly code?: string; readonly message: string };
    return `${code}: ${message}`;
  }
}

test("while it isn't finalized nothing is signed, and the release before can go on", { timeout: 280_000 }, async () => {
  for (const node of cluster.nodes) await restart(node, holdfastBin);
  await work();
  const hint =
    /^incompatible: a sequencer needs cluster version 2, and the cluster is at 1: run holdfast upgrade --finalize$/;
  assert.match(await trySigning(), hint);
  for (const node of cluster.nodes) assert.deepEqual(await keysAt(node), []);
  assert.deepEqual(await holdfast.publicKeys(), []);
  const refused = await runCli(["key", "rotate"], environment);
  assert.equal(refused.code, 1);
  assert.match(refused.err, /a key for sequencers needs cluster version 2/);
  const without = await runCli(["lock", "a", "--", "sh", "-c", 'echo "[$HOLDFAST_SEQUENCER]"'], environment);
  assert.deepEqual([without.code, without.out], [0, "[]\n"], "holdfast lock runs all the same");

  for (const node of cluster.nodes) {
    await restart(node, former.bin);
    await work();
  }
  assert.equal((await holdfast.inspect("held"))?.holders[0]?.token, held.token);
});

test("its end brings a key, which the release before can't run with", { timeout: 280_000 }, async () => {
  for (const node of cluster.nodes) await restart(node, holdfastBin);
  assert.equal(await holdfast.finalizeUpgrade(), 2);
  await until("all have a key", async () =>
    (await Promise.all(cluster.nodes.map(keysAt))).every((keys) => keys.length === 1),
  );
  const keys = await keysAt(cluster.nodes[0] as TestNode);
  assert.equal(verifySequencer(await held.sequencer(), keys).token, held.token);
  await work();
  const last = cluster.nodes[2] as TestNode;
  last.signal("SIGTERM");
  await last.exited();
  last.bin = former.bin;
  last.start();
  assert.equal(await last.exited(), 83);
  last.bin = holdfastBin;
  last.start();
  await until("it is back", async () => (await statusOf(last))?.leader !== null);
  await until("its key is there", async () => (await keysAt(last))[0]?.id === keys[0]?.id);
});
