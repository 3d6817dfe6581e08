/** A store with a log in blocks, and what a later start or the files say of it. */
import type { Entry } from "@holdfast/raft";
import assert from "node:assert/strict";
import type { Store } from "../src/index.js";
import { verifyDatabase } from "../src/open-store.js";
import { nameOf } from "../src/rows.js";
import {
  append,
  endOf,
  entriesAfter,
  firstBase,
  formNew,
  nothing,
  openFormed,
  owner,
  payloads,
  plain,
  term,
} from "./fixture.js";

export const hardState = { term: term(2), votedFor: "n1" };

/** A store in term 2 with entries from 1 on, in blocks of these sizes. */
export async function storeWith(
  ...sizes: readonly number[]
): Promise<{ directory: string; opened: { close(): Promise<void> }; store: Store; entries: Entry[] }> {
  const { directory, opened, store } = await formNew();
  await store.write({ ...nothing, hardState });
  const entries: Entry[] = [];
  for (const size of sizes) {
    const block = entriesAfter(endOf(entries), 2, payloads(size, 20, size));
    await append(store, block);
    entries.push(...block);
  }
  return { directory, opened, store, entries };
}

export async function expectRestored(directory: string, expected: object): Promise<void> {
  const { opened, restored } = await openFormed(directory);
  assert.deepEqual(plain(restored), plain({ hardState, base: firstBase, entries: [], ...expected }));
  await opened.close();
}

export async function rowsOf(directory: string, kind: string): Promise<string[]> {
  const { rows } = await verifyDatabase({ directory, owner, machineRestarted: false });
  return [...rows.keys()].filter((key) => nameOf(Buffer.from(key, "latin1"))?.kind === kind);
}
