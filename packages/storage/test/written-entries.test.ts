import assert from "node:assert/strict";
import { appendFile, copyFile, readFile, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { Entry } from "@holdfast/raft";
import { readWrittenBlocks, StorageError } from "../src/index.js";
import { append, entriesAfter, index, newPath, nothing, payloads } from "./fixture.js";
import { storeWith } from "./store-fixture.js";

/** Of the one log of a database that was opened once. */
async function logOf(directory: string): Promise<string> {
  const folder = join(directory, "db");
  const names = (await readdir(folder)).filter((name) => name.endsWith(".log")).sort();
  return join(folder, names.at(-1) ?? "none");
}

async function writtenIn(file: string): Promise<readonly Entry[]> {
  return (await readWrittenBlocks(file)).flatMap(({ entries }) => entries);
}

function assertEntries(found: readonly Entry[], expected: readonly Entry[]): void {
  const plain = (entry: Entry): object => ({ ...entry, payload: [...entry.payload] });
  assert.deepEqual(found.map(plain), expected.map(plain));
}

test("a log file tells all entries that were ever appended, those too that were truncated", async () => {
  const { directory, opened, store, entries } = await storeWith(5, 3);
  const kept = entries.slice(0, 6);
  const end = kept.at(-1);
  assert.ok(end !== undefined);
  const more = entriesAfter(end, 3, payloads(2, 30, 9));
  await store.write({ ...nothing, hardState: { term: 3 as never, votedFor: null }, truncateFrom: index(7) });
  await append(store, more);
  const found = await writtenIn(await logOf(directory));
  // While the node runs.
  assertEntries(found.slice(0, 8), entries);
  assertEntries(found.slice(-2), more);
  const blocks = await readWrittenBlocks(await logOf(directory));
  assert.equal(blocks.at(-1)?.previousChain, end.chain);
  await opened.close();
});

test("an end that is cut off is passed over, and what is no log is refused", async () => {
  const { directory, opened, entries } = await storeWith(4, 4);
  await opened.close();
  const copy = await newPath();
  await copyFile(await logOf(directory), copy);
  const whole = await readFile(copy);
  await writeFile(copy, whole.subarray(0, whole.length - 10));
  assertEntries(await writtenIn(copy), entries.slice(0, 4));
  await writeFile(copy, whole);
  await appendFile(copy, Buffer.from([1, 2, 3]));
  assertEntries(await writtenIn(copy), entries);
  await assert.rejects(readWrittenBlocks(join(copy, "none")), (error: unknown) => {
    return error instanceof StorageError && error.code === "io" && error.message.includes(copy);
  });
});
