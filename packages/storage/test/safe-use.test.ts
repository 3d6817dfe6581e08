/** LevelDB is only used in the one safe way, and its errors are final. */
import type { Entry, HardState } from "@holdfast/raft";
import assert from "node:assert/strict";
import { readFile, readdir } from "node:fs/promises";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { readIdentity } from "../src/identity.js";
import { StorageError } from "../src/index.js";
import { LevelStore } from "../src/level-store.js";
import type { Recovered } from "../src/recovery.js";
import {
  append,
  baseAt,
  endOf,
  entriesAfter,
  firstBase,
  formNew,
  index,
  nothing,
  open,
  owner,
  payloads,
  writeSnapshot,
} from "./fixture.js";
import { internals, originals, restoreInternals } from "./level-internals.js";
import type { Internals } from "./level-internals.js";
import { expectRestored, hardState, rowsOf, storeWith } from "./store-fixture.js";

test("every write is one batch, synced; large removals go in pieces and are compacted", async () => {
  const batches: { dels: number; sync: boolean }[] = [];
  const compacted: string[] = [];
  internals._batch = function (this: unknown, operations, options) {
    batches.push({ dels: operations.filter(({ type }) => type === "del").length, sync: options.sync === true });
    return originals._batch.call(this as Internals, operations, options);
  };
  internals.compactRange = function (this: unknown, start, end) {
    compacted.push(`${start.toString("latin1", 0, 1)}${end.readUInt32BE(end.length - 4)}`);
    return originals.compactRange.call(this as Internals, start, end);
  };
  for (const name of ["_put", "_del", "_clear", "_chainedBatch"] as const)
    internals[name] = () => assert.fail(`${name} was called`);
  const { directory, opened, store } = await formNew();
  await store.write({ ...nothing, hardState });
  const entries: Entry[] = [];
  for (let block = 0; block < 1_500; block++) {
    const [entry] = entriesAfter(endOf(entries), 2, payloads(1, 100)) as [Entry];
    entries.push(entry);
    await append(store, [entry]);
  }
  await writeSnapshot(store, baseAt(entries.at(-1)), payloads(3, 10));
  const before = batches.length;
  await store.write({ ...nothing, removeThrough: index(1_400) });
  let last = endOf(entries);
  for (let write = 0; write < 40; write++) {
    const more = entriesAfter(last, 2, payloads(1, 1));
    last = endOf(more);
    await append(store, more);
  }
  await opened.close();
  assert(
    batches.every(({ sync }) => sync),
    "each with sync",
  );
  assert(
    batches.every(({ dels }) => dels <= 64),
    "in small pieces",
  );
  assert.equal(
    batches.slice(before).reduce((sum, { dels }) => sum + dels, 0),
    1_400,
  );
  assert.deepEqual(compacted, ["e1400"], "once, when all are deleted");
  restoreInternals();
  assert.equal((await rowsOf(directory, "entries")).length, 140);
  await expectRestored(directory, {
    base: baseAt(entries.at(-1)),
    entries: entriesAfter(
      endOf(entries),
      2,
      [...Array(40)].map(() => payloads(1, 1)[0] as Uint8Array),
    ),
  });
});

test("what a crash left of a removal is deleted at the next start, synced", async () => {
  const { directory, opened, store } = await formNew();
  await store.write({ ...nothing, hardState });
  const entries = entriesAfter(endOf([]), 2, payloads(1_200, 3));
  for (const entry of entries) await append(store, [entry]);
  await writeSnapshot(store, baseAt(entries.at(-1)), payloads(1, 10));
  await store.write({ ...nothing, removeThrough: index(1_200) });
  await opened.close();
  assert.equal((await rowsOf(directory, "entries")).length, 1_200 - 64);
  await expectRestored(directory, { base: baseAt(entries.at(-1)) });
  assert.equal((await rowsOf(directory, "entries")).length, 0);
});

test("rows that LevelDB doesn't show as its files hold them are damage", async () => {
  const { directory, opened } = await storeWith(2, 2);
  await opened.close();
  const original = internals._iterator;
  internals._iterator = function (this: unknown, options) {
    return original.call(this as Internals, { ...options, limit: 4 });
  };
  await assert.rejects(
    open(directory),
    (error) => error instanceof StorageError && error.code === "damaged" && /shows 4 of its 5 rows/.test(error.message),
  );
  restoreInternals();
});

test("a batch is synced, then its file's name, then the mark is written, and synced if there is a new name", async () => {
  const steps: string[] = [];
  const step =
    <T>(name: string, result: T) =>
    async (): Promise<T> => {
      await delay(1);
      steps.push(name);
      return result;
    };
  let isNewName = false;
  const unused = (): never => assert.fail("not used");
  const recovered = recoveredFrom(hardState);
  const store = new LevelStore(recovered, {
    database: {
      writeSynced: step("batch", undefined),
      get: unused,
      rows: unused,
      compact: unused,
      close: step("close", undefined),
    },
    mark: {
      write: (number) => step(`mark ${number}`, undefined)(),
      sync: step("sync mark", undefined),
      close: step("close", undefined),
    },
    newNames: { syncIfChanged: () => step("look at names", isNewName)(), close: step("close", undefined) },
    quarantine: unused,
    onFirstWrite: () => steps.push("first write"),
  });
  await append(store, entriesAfter(endOf([]), 2, payloads(1, 1)));
  isNewName = true;
  await store.write({ ...nothing, hardState });
  assert.deepEqual(steps, [
    "first write",
    "batch",
    "look at names",
    "mark 6",
    "batch",
    "look at names",
    "mark 7",
    "sync mark",
  ]);
});

function recoveredFrom(state: HardState): Recovered {
  return {
    owner,
    meta: {
      batchNumber: 5,
      generation: 0,
      firstIndex: 1,
      last: { ...firstBase.position, chain: 0 },
      snapshotIndex: null,
      hardState: state,
    },
    restored: { hardState: state, base: firstBase, entries: [] },
    blocks: [],
    complete: null,
    garbage: [],
  };
}

test("only one module imports level, and one more for the lock", async () => {
  const source = new URL("../../src/", import.meta.url);
  const importing: string[] = [];
  for (const name of await readdir(source, { recursive: true })) {
    if (!name.endsWith(".ts")) continue;
    if (/from "(level|classic-level|abstract-level)"/.test(await readFile(new URL(name, source), "utf8")))
      importing.push(name);
  }
  assert.deepEqual(importing.sort(), ["database.ts", "directory-lock.ts"]);
});

test("a failed write, and everything after it", async () => {
  const { directory, opened, store, entries } = await storeWith(3);
  await writeSnapshot(store, baseAt(entries[1]), payloads(1, 5));
  internals._batch = () => Promise.reject(new Error("IO error: No space left on device"));
  const isFinal = (error: unknown): boolean =>
    error instanceof StorageError &&
    error.code === "io" &&
    error.exitCode === 74 &&
    /No space left/.test(error.message);
  await assert.rejects(append(store, entriesAfter(endOf(entries), 2, payloads(1, 1))), isFinal);
  restoreInternals();
  await assert.rejects(append(store, entriesAfter(endOf(entries), 2, payloads(1, 1))), isFinal, "not retried");
  await assert.rejects(store.readChunk(index(2), 0), isFinal);
  await opened.close();
  await expectRestored(directory, { base: baseAt(entries[1]), entries: entries.slice(2) });
  assert.equal((await readIdentity(directory))?.quarantine, null, "a full disk is no damage");
});

test("a chunk that LevelDB returns with a flipped bit puts the directory into quarantine", async () => {
  const { directory, opened, store, entries } = await storeWith(3);
  await writeSnapshot(store, baseAt(entries[1]), payloads(1, 50));
  internals._get = async function (this: unknown, key, options) {
    const value = Buffer.from((await originals._get.call(this as Internals, key, options)) ?? []);
    value[20] = (value[20] as number) ^ 4;
    return value;
  };
  await assert.rejects(
    store.readChunk(index(2), 0),
    (error) => error instanceof StorageError && error.code === "damaged",
  );
  restoreInternals();
  await assert.rejects(append(store, []), /chunk 0 of the snapshot of index 2/);
  await opened.close();
  await assert.rejects(
    open(directory),
    (error) =>
      error instanceof StorageError && error.code === "quarantined" && /chunk 0 of the snapshot/.test(error.message),
  );
});

test("a block that LevelDB no longer has puts the directory into quarantine", async () => {
  const { directory, opened, store } = await storeWith(5);
  internals._get = () => Promise.resolve(undefined);
  await assert.rejects(
    store.write({ ...nothing, truncateFrom: index(3) }),
    /the block of entries at index 1 is missing/,
  );
  restoreInternals();
  await opened.close();
  await assert.rejects(open(directory), (error) => error instanceof StorageError && error.code === "quarantined");
});

test("a quarantine for a reason of the caller's", async () => {
  const { directory, opened } = await formNew();
  await opened.quarantine("another chain value at index 7 than the leader's");
  await opened.close();
  await assert.rejects(
    open(directory),
    (error) =>
      error instanceof StorageError &&
      error.code === "quarantined" &&
      /another chain value at index 7/.test(error.message),
  );
});

test("a closed store", async () => {
  const { opened, store } = await storeWith(1);
  await opened.close();
  await assert.rejects(append(store, []), /the store is closed/);
});
