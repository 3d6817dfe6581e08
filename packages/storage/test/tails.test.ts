/** What a kill or a power loss leaves is no damage: each must start, with everything that was acknowledged. */
import type { Entry } from "@holdfast/raft";
import fc from "fast-check";
import assert from "node:assert/strict";
import { appendFile, copyFile, mkdir, readFile, readdir, rm, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { StorageError } from "../src/index.js";
import { verifyDatabase } from "../src/open-store.js";
import {
  append,
  bootId,
  copyOf,
  databaseFiles,
  endOf,
  entriesAfter,
  formNew,
  laterBootId,
  nothing,
  openFormed,
  owner,
  payloads,
  plain,
  readSnapshot,
  term,
  writeSnapshot,
  baseAt,
} from "./fixture.js";
import { logOf, makePrototypes, reopen } from "./prototypes.js";

/** A directory whose last batch was under way: it is in the log, and the mark is that of the batch before. */
interface Unfinished {
  readonly directory: string;
  readonly acknowledged: readonly Entry[];
  readonly lastRecordAt: number;
  readonly size: number;
}

let small: Unfinished;
/** The last record begins in one block of the log and ends three blocks later. */
let large: Unfinished;

before(async () => {
  small = await makeUnfinished(payloads(2, 11));
  large = await makeUnfinished(payloads(9, 11_000));
});

async function makeUnfinished(last: readonly Uint8Array[]): Promise<Unfinished> {
  const { directory, opened, store } = await formNew();
  await store.write({ ...nothing, hardState: { term: term(2), votedFor: "n1" } });
  const first = entriesAfter({ index: 0, chain: 0 }, 1, payloads(3, 700));
  await append(store, first);
  const second = entriesAfter(endOf(first), 2, payloads(3, 9_000));
  await append(store, second);
  await copyFile(join(directory, "mark"), `${directory}.mark`);
  await append(store, entriesAfter(endOf(second), 2, last));
  await opened.close();
  await copyFile(`${directory}.mark`, join(directory, "mark"));
  const { bytes, records } = await logOf(directory);
  return {
    directory,
    acknowledged: [...first, ...second],
    lastRecordAt: records.at(-1)?.offset ?? Number.NaN,
    size: bytes.length,
  };
}

const hardState = { term: term(2), votedFor: "n1" };

/** Starts, compares, writes on, and starts again. */
async function expectStart(directory: string, acknowledged: readonly Entry[], machineBootId: string): Promise<void> {
  const { opened, store, restored } = await openFormed(directory, machineBootId);
  assert.deepEqual(restored.hardState, hardState);
  assert.deepEqual(plain(restored), plain({ ...restored, entries: acknowledged }));
  const more = entriesAfter(endOf(acknowledged), 2, payloads(1, 5));
  await append(store, more);
  await opened.close();
  const again = await openFormed(directory, machineBootId);
  assert.deepEqual(plain(again.restored), plain({ ...restored, entries: [...acknowledged, ...more] }));
  await again.opened.close();
}

/** The indexes and chain values that a start would bring back, or the error; nothing is changed. */
async function verify(directory: string, machineRestarted: boolean): Promise<readonly number[] | StorageError> {
  try {
    const { recovered } = await verifyDatabase({ directory, owner, machineRestarted });
    return recovered.restored.entries.map((entry) => entry.chain);
  } catch (error) {
    assert(error instanceof StorageError);
    return error;
  }
}

const chains = (entries: readonly Entry[]): number[] => entries.map((entry) => entry.chain);

describe("a kill in mid-write", () => {
  test("the log ends at any byte of the last record", async () => {
    const directory = await copyOf(small.directory);
    const { path } = await logOf(directory);
    for (let end = small.size - 1; end >= small.lastRecordAt; end--) {
      await truncate(path, end);
      assert.deepEqual(await verify(directory, false), chains(small.acknowledged), `cut at ${end}`);
      if (end % 32 === 0) {
        const copy = await copyOf(directory);
        await expectStart(copy, small.acknowledged, bootId);
        await rm(copy, { recursive: true });
      }
    }
    await expectStart(directory, small.acknowledged, bootId);
  });

  test("the log ends anywhere in a record of several blocks", async () => {
    const directory = await copyOf(large.directory);
    const { path } = await logOf(directory);
    const ends = new Set([large.lastRecordAt]);
    for (let end = large.lastRecordAt; end < large.size; end += 997) ends.add(end);
    for (let block = 32_768; block < large.size; block += 32_768) {
      for (let end = block - 9; end <= block + 9; end++)
        if (end > large.lastRecordAt && end < large.size) ends.add(end);
    }
    for (const end of [...ends].sort((a, b) => b - a)) {
      await truncate(path, end);
      assert.deepEqual(await verify(directory, false), chains(large.acknowledged), `cut at ${end}`);
    }
    await expectStart(directory, large.acknowledged, bootId);
  });

  test("the batch is whole and its mark is not written", async () => {
    const directory = await copyOf(small.directory);
    const { opened, restored } = await openFormed(directory);
    assert.equal(restored.entries.length, small.acknowledged.length + 2);
    await opened.close();
  });

  test("the same cut below the mark is damage at every byte", async () => {
    const { inLog } = await makePrototypes();
    const directory = await copyOf(inLog);
    const { path, bytes, records } = await logOf(directory);
    for (let end = bytes.length - 1; end >= (records.at(-1)?.offset ?? 0); end--) {
      await truncate(path, end);
      for (const restarted of [false, true]) {
        const found = await verify(directory, restarted);
        assert(found instanceof StorageError && found.code === "damaged", `cut at ${end}`);
      }
    }
  });
});

/** Zeroes and flips parts of the last record, and may cut it: as a disk leaves pages of one write that it had not finished. */
const torn = fc.record({
  zeroed: fc.array(fc.tuple(fc.double({ min: 0, max: 1, noNaN: true }), fc.integer({ min: 1, max: 8_192 })), {
    maxLength: 4,
  }),
  flipped: fc.array(fc.tuple(fc.double({ min: 0, max: 1, noNaN: true }), fc.integer({ min: 1, max: 255 })), {
    maxLength: 3,
  }),
  kept: fc.double({ min: 0, max: 1, noNaN: true }),
});

for (const which of ["small", "large"] as const) {
  test(`a torn last batch, ${which}`, async () => {
    const unfinished = which === "small" ? small : large;
    const { directory, acknowledged, lastRecordAt, size } = unfinished;
    const copy = await copyOf(directory);
    const { path, bytes } = await logOf(copy);
    const whole = await verify(copy, true);
    let accepted = 0;
    const check = async ({
      zeroed,
      flipped,
      kept,
    }: {
      zeroed: [number, number][];
      flipped: [number, number][];
      kept: number;
    }): Promise<void> => {
      const changed = Buffer.from(bytes);
      const place = (at: number): number => lastRecordAt + Math.floor(at * (size - lastRecordAt - 1));
      for (const [at, length] of zeroed) changed.fill(0, place(at), Math.min(place(at) + length, size));
      for (const [at, mask] of flipped) changed[place(at)] = (changed[place(at)] as number) ^ mask;
      const end = kept > 0.7 ? size : place(kept);
      await writeFile(path, changed.subarray(0, end));
      const isWhole = end === size && changed.equals(bytes);
      assert.deepEqual(await verify(copy, true), isWhole ? whole : chains(acknowledged));
      // In the same boot only a plain cut can be a kill's work; what else is taken for one must lose nothing acknowledged.
      const sameBoot = await verify(copy, false);
      if (sameBoot instanceof StorageError) assert.equal(sameBoot.code, "damaged");
      else assert.deepEqual(sameBoot, isWhole ? whole : chains(acknowledged));
      if (!isWhole) accepted++;
    };
    await fc.assert(fc.asyncProperty(torn, check), { numRuns: 150 });
    assert(accepted > 50, "most of the runs tear something");
    await writeFile(path, Buffer.from(bytes).fill(0, lastRecordAt + 9, lastRecordAt + 30));
    await expectStart(copy, acknowledged, laterBootId);
  });
}

describe("a power loss", () => {
  test("a wrong checksum at the end, and the machine was not restarted", async () => {
    const directory = await copyOf(small.directory);
    const { path, bytes } = await logOf(directory);
    bytes[bytes.length - 1] = (bytes[bytes.length - 1] as number) ^ 1;
    await writeFile(path, bytes);
    const found = await verify(directory, false);
    assert(found instanceof StorageError && /wrong checksum of the record/.test(found.message));
  });

  test("a tail of zeros", async () => {
    for (const zeros of [3, 4_096, 70_000]) {
      const directory = await copyOf(small.directory);
      const { path } = await logOf(directory);
      await truncate(path, small.lastRecordAt);
      await truncate(path, small.lastRecordAt + zeros);
      await expectStart(directory, small.acknowledged, laterBootId);
    }
  });

  test("a tail of noise, also where it looks like the beginning of a record", async () => {
    const noise = Buffer.alloc(64, 0xa5);
    for (const head of [[1, 2, 3, 4, 0, 4, 1], [1, 2, 3, 4, 0, 4, 2], [0xa5]]) {
      const directory = await copyOf(small.directory);
      const { path, bytes } = await logOf(directory);
      await writeFile(path, Buffer.concat([bytes.subarray(0, small.lastRecordAt), Buffer.from(head), noise]));
      await expectStart(directory, small.acknowledged, laterBootId);
    }
  });

  test("a kill after the torn end was found, before the identity has the machine's new boot id", async () => {
    const directory = await copyOf(small.directory);
    const { path, bytes } = await logOf(directory);
    await writeFile(path, bytes.fill(0xee, small.lastRecordAt + 12));
    const identity = await readFile(join(directory, "identity"));
    await reopen(directory, laterBootId);
    await writeFile(join(directory, "identity"), identity);
    await expectStart(directory, small.acknowledged, laterBootId);
  });

  test("a mark that is older, and one with a torn slot", async () => {
    const early = await formNew();
    await copyFile(join(early.directory, "mark"), `${early.directory}.mark`);
    await early.opened.close();
    const old = await copyOf(small.directory);
    await copyFile(`${early.directory}.mark`, join(old, "mark"));
    await openFormed(old, laterBootId).then(({ opened }) => opened.close());
    for (const slot of [0, 4_096]) {
      const directory = await copyOf(small.directory);
      const mark = await readFile(join(directory, "mark"));
      mark[slot + 14] = (mark[slot + 14] as number) ^ 0xff;
      await writeFile(join(directory, "mark"), mark);
      await openFormed(directory, laterBootId).then(({ opened }) => opened.close());
      // The start has written both slots anew: the next one finds them sound, in the same boot.
      await openFormed(directory, laterBootId).then(({ opened }) => opened.close());
    }
  });
});

describe("what a crash leaves elsewhere", () => {
  test("an empty log behind the newest one", async () => {
    const directory = await copyOf(small.directory);
    await truncate((await logOf(directory)).path, small.lastRecordAt + 5);
    await writeFile(join(directory, "db", "000099.log"), "");
    await expectStart(directory, small.acknowledged, bootId);
  });

  test("a MANIFEST whose last edit is cut off, in any boot, or torn, after a restart of the machine", async () => {
    for (const [machineBootId, rest] of [
      [bootId, Buffer.from("0102030440", "hex")],
      [laterBootId, Buffer.alloc(90)],
      [laterBootId, Buffer.alloc(40, 3)],
    ] as const) {
      const directory = await copyOf(small.directory);
      await truncate((await logOf(directory)).path, small.lastRecordAt);
      const [manifest] = await databaseFiles(directory, /^MANIFEST/);
      await appendFile(manifest as string, rest);
      await expectStart(directory, small.acknowledged, machineBootId);
    }
  });

  test("temporary files, an unlisted table, a log that is in tables already", async () => {
    const directory = await copyOf(small.directory);
    const { path, bytes } = await logOf(directory);
    await truncate(path, small.lastRecordAt);
    await writeFile(join(directory, "identity.tmp"), "half an ident");
    await writeFile(join(directory, "mark.tmp"), "");
    await mkdir(join(directory, "db.tmp"));
    await writeFile(join(directory, "db.tmp", "CURRENT"), "MANIF");
    await writeFile(join(directory, "db", "000088.dbtmp"), "MANIFEST-0000");
    await writeFile(join(directory, "db", "000087.ldb"), bytes.subarray(0, 5_000));
    await writeFile(join(directory, "db", "000001.log"), bytes.subarray(0, 100));
    await writeFile(join(directory, "node.log"), "{}\n");
    await expectStart(directory, small.acknowledged, bootId);
    assert(!(await readdir(join(directory, "db"))).includes("000087.ldb"), "LevelDB has cleaned up");
    assert((await readdir(directory)).includes("node.log"), "what isn't ours stays");
  });

  test("an incomplete snapshot of each origin is cleaned away, and so is one that was replaced", async () => {
    const { directory, opened, store } = await formNew();
    await store.write({ ...nothing, hardState });
    const entries = entriesAfter({ index: 0, chain: 0 }, 2, payloads(20, 30));
    await append(store, entries);
    await writeSnapshot(store, baseAt(entries[4]), payloads(3, 100));
    await writeSnapshot(store, baseAt(entries[9]), payloads(2, 100, 50));
    const unfinished = { base: baseAt(entries[14]), chunk: 0, bytes: new Uint8Array(10), done: false };
    await store.write({ ...nothing, chunk: { ...unfinished, origin: "own" } });
    await store.write({ ...nothing, chunk: { ...unfinished, origin: "received" } });
    await opened.close();
    const again = await openFormed(directory);
    assert.equal(again.restored.base.position.index, 10);
    assert.deepEqual(await readSnapshot(again.store), payloads(2, 100, 50));
    assert.equal(await again.store.readChunk(baseAt(entries[4]).position.index, 0), null);
    await again.opened.close();
    const { rows } = await verifyDatabase({ directory, owner, machineRestarted: false });
    const kinds = [...rows.keys()].map((key) => key.charCodeAt(0)).sort((a, b) => a - b);
    assert.equal(String.fromCharCode(...kinds), "bcemoss", "two chunks of one snapshot are left");
  });
});
