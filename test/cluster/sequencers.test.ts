/** Sequencers from end to end: signed by real nodes, verified at a resource that asks them for their keys, checked and replaced by the CLI. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Holdfast, SequencerCheck } from "@holdfast/client";
import { sequencerKeys, verifySequencer } from "@holdfast/fence";
import type { PublicKey } from "@holdfast/fence";
import { runCli } from "../cli/cli-process.js";
import { statusOf, TestCluster } from "../harness/cluster.js";
import type { TestNode } from "../harness/cluster.js";
import { commandsOf, run } from "../harness/operations-page.js";
import { until } from "../harness/until.js";

let cluster: TestCluster;
let holdfast: Holdfast;
let environment: Record<string, string> = {};

before(async () => {
  cluster = await TestCluster.start();
  holdfast = await cluster.connect({ ttlMs: 30_000 });
  await cluster.raise();
  environment = { HOLDFAST_ENDPOINTS: cluster.endpoints.join(",") };
  await until("all have a key", async () => (await keysOfAll()).every((keys) => keys.length > 0));
});
after(() => cluster.close());

async function keysAt(node: TestNode): Promise<readonly PublicKey[]> {
  const response = await fetch(`http://${node.endpoint}/v1/keys`);
  assert.equal(response.status, 200);
  return ((await response.json()) as { readonly keys: readonly PublicKey[] }).keys;
}

const keysOfAll = (): Promise<(readonly PublicKey[])[]> => Promise.all(cluster.nodes.map(keysAt));

async function checkByCli(
  sequencer: string,
): Promise<{ readonly code: number | string; readonly check: SequencerCheck }> {
  const { code, out } = await runCli(["check", "--json", sequencer], environment);
  return { code, check: JSON.parse(out) as SequencerCheck };
}

test("what the cluster signed is verified with any node's keys, without asking it about the sequencer", async () => {
  const [first, ...others] = await keysOfAll();
  for (const keys of others) assert.deepEqual(keys, first);
  assert.deepEqual(first, await holdfast.publicKeys());
  await using lock = await holdfast.acquire("doc:42");
  const sequencer = await lock.sequencer();
  const { resource, token } = verifySequencer(sequencer, first ?? []);
  assert.deepEqual({ resource, token }, lock.fence());
  const keys = sequencerKeys({ endpoints: cluster.endpoints });
  assert.equal((await keys.verify(sequencer)).token, lock.token);
  const huge = sequencer.replace(`.${token}.`, `.${Number.MAX_SAFE_INTEGER}.`);
  await assert.rejects(keys.verify(huge), { code: "bad_sequencer", reason: "forged" });
  assert.equal((await holdfast.check(huge)).reason, "forged");
});

test("a command under holdfast lock has its sequencer, and holdfast check tells when that is over", async () => {
  const { code, out, err } = await runCli(
    ["lock", "job", "--slots", "2", "--", "sh", "-c", 'echo "$HOLDFAST_SEQUENCER $HOLDFAST_TOKEN"'],
    environment,
  );
  assert.deepEqual([code, err], [0, ""]);
  const [sequencer = "", token] = out.trim().split(" ");
  const over = await checkByCli(sequencer);
  assert.equal(over.code, 1);
  const claim = { resource: "job#0", name: "job", mode: "slot", slot: 0, token: Number(token) };
  assert.deepEqual(over.check, { isCurrent: false, reason: "over", claim, currentToken: null });
  await using lock = await holdfast.acquire("held");
  const current = await checkByCli(await lock.sequencer());
  assert.deepEqual([current.code, current.check.isCurrent], [0, true]);
  const text = await runCli(["check", "holdfast1.x"], environment);
  assert.deepEqual([text.code, text.out], [1, "current: no, it is no sequencer\n"]);
});

test("another leader signs with the same key, and a rotation makes another, which is logged", async () => {
  await using lock = await holdfast.acquire("a");
  const before = await lock.sequencer();
  const old = await cluster.leader();
  await old.kill();
  const next = await cluster.leader();
  const [key] = await keysAt(next);
  assert.equal(verifySequencer(await lock.sequencer(), key === undefined ? [] : [key]).token, lock.token);
  old.start();
  await until("it is back", async () => (await statusOf(old))?.leader !== null);

  /** The page's commands. */
  const [show = [], rotate = []] = commandsOf("Keys for sequencers", 2, {});
  const { code, out } = await run([...rotate, "--json"], environment);
  assert.equal(code, 0);
  const { key: made } = JSON.parse(out) as { readonly key: string };
  await until("all have it", async () => (await keysOfAll()).every((keys) => keys[0]?.id === made));
  const keys = await keysAt(next);
  assert.deepEqual(
    keys.map(({ id }) => id),
    [made, key?.id],
  );
  assert.equal(verifySequencer(before, keys).token, lock.token);
  assert.equal((await holdfast.check(before)).isCurrent, true);
  assert.equal(verifySequencer(await lock.sequencer(), keys).keyId, made);
  const logged = cluster.nodes.map((node) => node.log()).join("");
  assert.match(logged, new RegExp(`"key":"${made}","replaces":"${key?.id}","principal":"[^"]+".*was replaced`));
  const list = await run(show, environment);
  assert.match(list.out, new RegExp(`^${made} +current .*\n${key?.id} +former `, "m"));
});
