/**
 * Writes to the directory named on its command line until it is killed. Before each write it prints the state that the write
 * leads to, and after it "done": so what is on disk must be the state of the last "done", or the one printed after it.
 */
import type { Entry } from "@holdfast/raft";
import assert from "node:assert/strict";
import { writeSync } from "node:fs";
import type { StoreWrite } from "../src/index.js";
import { baseAt, clusterId, endOf, entriesAfter, firstBase, index, nothing, open, payloads, term } from "./fixture.js";

const directory = process.argv[2];
assert(directory !== undefined);
const opened = await open(directory);
const { store, restored } = opened.store === null ? await opened.form(clusterId, firstBase) : opened;
assert(store !== null && restored !== null);
const entries: Entry[] = [...restored.entries];
let { base, hardState } = restored;

async function write(change: Partial<StoreWrite>): Promise<void> {
  const end = endOf(entries, base);
  writeSync(
    1,
    `${JSON.stringify({ last: end.index, chain: end.chain, term: hardState.term, base: base.position.index })}\n`,
  );
  await store?.write({ ...nothing, ...change });
  writeSync(1, "done\n");
}

async function append(round: number): Promise<void> {
  const more = entriesAfter(
    endOf(entries, base),
    hardState.term,
    payloads(1 + (round % 3), round % 11 === 0 ? 40_000 : 50, round),
  );
  entries.push(...more);
  await write({ entries: more });
}

async function replaceLast(round: number): Promise<void> {
  const cut = entries.pop();
  if (cut === undefined) return;
  hardState = { term: term(hardState.term + 1), votedFor: "n1" };
  const anew = entriesAfter(endOf(entries, base), hardState.term, payloads(2, round % 90, round));
  entries.push(...anew);
  await write({ hardState, truncateFrom: cut.index, entries: anew });
}

async function takeSnapshot(): Promise<void> {
  const at = entries[entries.length >> 1];
  if (at === undefined) return;
  const chunk = { base: baseAt(at), bytes: new Uint8Array(9_000).fill(3), origin: "own" } as const;
  await write({ chunk: { ...chunk, chunk: 0, done: false } });
  await write({ chunk: { ...chunk, chunk: 1, done: false } });
  ({ base } = chunk);
  entries.splice(0, entries.indexOf(at) + 1);
  await write({ chunk: { ...chunk, chunk: 2, done: true }, removeThrough: index(at.index) });
}

for (let round = 1; ; round++) {
  if (round % 20 === 0) await takeSnapshot();
  else if (round % 7 === 0) await replaceLast(round);
  else await append(round);
}
