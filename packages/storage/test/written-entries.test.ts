import assert from "node:assert/strict";
import { appendFile, copyFile, readFile, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { Entry } from "@holdfast/raft";
import { readWrittenBlocks, StorageError } from "../src/index.js";
import { append, entriesAfter, index, newPath, nothing, openFormed, payloads } from "./fixture.js";
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

test("a table tells them as well", async () => {
  const { directory, opened, entries } = await storeWith(4, 4);
  await opened.close();
  // A start makes a table of what the log held.
  await (await openFormed(directory)).opened.close();
  const folder = join(directory, "db");
  const tables = (await readdir(folder)).filter((name) => name.endsWith(".ldb"));
  const found = (await Promise.all(tables.map((name) => writtenIn(join(folder, name))))).flat();
  assertEntries(
    found.sort((one, other) => one.index - other.index),
    entries,
  );
  const copy = `${await newPath()}.ldb`;
  await writeFile(copy, (await readFile(join(folder, tables[0] ?? "none"))).subarray(0, -5));
  await assert.rejects(readWrittenBlocks(copy), (error: unknown) => {
    return error instanceof StorageError && error.code === "damaged";
  });
});

test("an end that is cut off is passed over, and what is no log is refused", async () => {
  const { directory, opened, entries } = await storeWith(4, 4);
  await opened.close();
  const copy = `${await newPath()}.log`;
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
