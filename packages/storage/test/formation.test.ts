/** A start, a formation and a recovery that die at any step leave a directory that the next start can use. */
import type { LogBase } from "@holdfast/raft";
import assert from "node:assert/strict";
import { mkdir, readFile, readdir, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { before, test } from "node:test";
import { readIdentity, writeIdentity } from "../src/identity.js";
import { StorageError, openDataDirectory } from "../src/index.js";
import type { DataDirectory } from "../src/index.js";
import { rootOf } from "../src/storage-error.js";

import { Crash, withFailpoint } from "./failpoints.js";
import {
  append,
  bootId,
  clusterId,
  copyOf,
  endOf,
  entriesAfter,
  firstBase,
  formNew,
  index,
  laterBootId,
  newPath,
  nodeId,
  nothing,
  open,
  openFormed,
  payloads,
  plain,
  term,
} from "./fixture.js";
import { logOf } from "./prototypes.js";

let drawn = 0;

async function start(directory: string): Promise<DataDirectory> {
  return await openDataDirectory({
    directory,
    nodeId,
    machineBootId: bootId,
    randomInstance: () => `instance-${++drawn}`,
  });
}

async function formHere(opened: DataDirectory): Promise<void> {
  if (opened.store === null) await opened.form(clusterId, firstBase);
}

/** A formed and empty node, which takes a write. */
async function expectFormed(directory: string): Promise<void> {
  const opened = await start(directory);
  assert.equal(opened.identity.clusterId, clusterId);
  assert.deepEqual(plain(opened.restored ?? assert.fail("no log")), {
    hardState: { term: 0, votedFor: null },
    base: plain(firstBase),
    entries: [],
  });
  await opened.store?.write({
    ...nothing,
    hardState: { term: term(1), votedFor: "n1" },
    entries: entriesAfter(endOf([]), 1, payloads(2, 9)),
  });
  await opened.close();
  const again = await start(directory);
  assert.equal(again.restored?.entries.length, 2);
  await again.close();
}

async function firstStartAndFormation(directory: string): Promise<void> {
  const opened = await start(directory);
  try {
    await formHere(opened);
  } finally {
    await opened.close();
  }
}

/** Runs it on new directories, dies at each step in turn, and hands over what that left. Returns the number of steps. */
async function dieAtEachStep(
  make: () => Promise<string>,
  run: (directory: string) => Promise<void>,
  check: (directory: string, step: number) => Promise<void>,
): Promise<number> {
  const trial = await make();
  const steps = await withFailpoint(Infinity, () => run(trial));
  for (let step = 1; step <= steps; step++) {
    const directory = await make();
    await assert.rejects(
      withFailpoint(step, () => run(directory)),
      (error) => rootOf(error) instanceof Crash,
    );
    await check(directory, step);
    await rm(directory, { recursive: true, force: true });
  }
  return steps;
}

test("a first start and a formation that die at any step are begun anew", async () => {
  const seen = { noIdentity: 0, unformed: 0, formed: 0 };
  const steps = await dieAtEachStep(newPath, firstStartAndFormation, async (directory, step) => {
    const identity = await readIdentity(directory);
    const opened = await start(directory);
    if (identity === null) seen.noIdentity++;
    else assert.equal(opened.identity.instance, identity.instance, `the instance is drawn once (step ${step})`);
    assert.equal(opened.identity.boot, (identity?.boot ?? 0) + 1);
    if (identity?.clusterId === null) seen.unformed++;
    if (identity?.clusterId === clusterId) seen.formed++;
    assert.equal(opened.store !== null, identity?.clusterId === clusterId, "formed or unformed, never half");
    await formHere(opened);
    await opened.close();
    await expectFormed(directory);
  });
  assert(steps > 25, `the steps are counted: ${steps}`);
  assert(
    Object.values(seen).every((count) => count >= 4),
    JSON.stringify(seen),
  );
});

let torn: string;
let acknowledged: number;

before(async () => {
  const { directory, opened, store } = await formNew();
  const entries = entriesAfter(endOf([]), 1, payloads(5, 50));
  await store.write({ ...nothing, hardState: { term: term(1), votedFor: null }, entries });
  const mark = await readFile(join(directory, "mark"));
  await append(store, entriesAfter(endOf(entries), 1, payloads(2, 50)));
  await opened.close();
  const log = await logOf(directory);
  await writeFile(log.path, log.bytes.fill(0, log.bytes.length - 60));
  // A torn slot, too: the other one stands, one batch older.
  mark[10] = (mark[10] as number) ^ 0xff;
  await writeFile(join(directory, "mark"), mark);
  torn = directory;
  acknowledged = entries.length;
});

test("a recovery after a power loss that dies at any step is begun anew", async () => {
  const steps = await dieAtEachStep(
    () => copyOf(torn),
    async (directory) => (await openFormed(directory, laterBootId)).opened.close(),
    async (directory, step) => {
      const { opened, store, restored } = await openFormed(directory, laterBootId);
      assert.equal(restored.entries.length, acknowledged, `step ${step}`);
      await append(store, entriesAfter(endOf(restored.entries), 1, payloads(1, 1)));
      await opened.close();
    },
  );
  assert(steps > 12, `the steps are counted: ${steps}`);
});

test("the removal of a half-done formation that dies at any step is begun anew", async () => {
  const halfFormed = async (): Promise<string> => {
    const { directory, opened } = await formNew();
    await opened.close();
    const identity = await readIdentity(directory);
    assert(identity !== null);
    await writeIdentity(directory, { ...identity, clusterId: null });
    return directory;
  };
  const steps = await dieAtEachStep(
    halfFormed,
    async (directory) => (await open(directory)).close(),
    async (directory, step) => {
      const opened = await open(directory);
      assert.equal(opened.store, null, `step ${step}`);
      assert.deepEqual((await readdir(directory)).sort(), ["identity", "lock"]);
      await formHere(opened);
      await opened.close();
      await expectFormed(directory);
    },
  );
  assert(steps > 8, `the steps are counted: ${steps}`);
});

test("a node is formed once", async () => {
  const { opened } = await formNew();
  await assert.rejects(opened.form(clusterId, firstBase), /a node is formed once/);
  await opened.close();
});

test("a log that begins higher, in a later term", async () => {
  const base: LogBase = { ...firstBase, position: { index: index(2 ** 40), term: term(7) }, chain: 99 };
  const { directory, opened, store } = await formNew(base);
  const entries = entriesAfter({ index: 2 ** 40, chain: 99 }, 7, payloads(3, 10));
  await append(store, entries);
  await opened.close();
  const again = await openFormed(directory);
  assert.deepEqual(plain(again.restored), plain({ hardState: { term: term(7), votedFor: null }, base, entries }));
  await again.opened.close();
});

test("identity: mode, boot counter, boot id, instance", async () => {
  const directory = join(await newPath(), "deep", "er");
  const first = await open(directory);
  assert.deepEqual(first.identity, {
    formatVersion: 1,
    nodeId,
    instance: first.identity.instance,
    clusterId: null,
    boot: 1,
    machineBootId: bootId,
    quarantine: null,
  });
  assert.equal((await stat(directory)).mode & 0o777, 0o700);
  assert.equal(first.restored, null);
  await first.close();
  const second = await open(directory, { machineBootId: laterBootId });
  assert.deepEqual(second.identity, { ...first.identity, boot: 2, machineBootId: laterBootId });
  const { store } = await second.form(clusterId, firstBase);
  assert.equal(second.store, store);
  assert.equal(second.identity.clusterId, clusterId);
  assert.equal(second.identity.boot, 2, "a formation is no start");
  await second.close();
  const third = await open(directory);
  assert.deepEqual(third.identity, { ...second.identity, boot: 3, machineBootId: bootId });
  assert.deepEqual(await readIdentity(directory), third.identity);
  await third.close();
});

test("what was recovered is let go at the first write", async () => {
  const { directory, opened, store } = await formNew();
  assert.notEqual(opened.restored, null);
  await append(store, []);
  assert.equal(opened.restored, null);
  await opened.close();
  const again = await openFormed(directory);
  assert.notEqual(again.opened.restored, null);
  await again.opened.close();
});

test("a directory that can't be made", async () => {
  const path = await newPath();
  await writeFile(path, "a file");
  await assert.rejects(
    open(join(path, "x")),
    (error) => error instanceof StorageError && error.code === "io" && error.exitCode === 74,
  );
  await mkdir(`${path}.d`);
});
