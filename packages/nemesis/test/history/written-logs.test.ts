import assert from "node:assert/strict";
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import type { Entry } from "@holdfast/raft";
import { openDataDirectory } from "@holdfast/storage";
import type { StoreWrite } from "@holdfast/storage";
import { encodeSnapshotPiece, entryCodec } from "@holdfast/wire";
import { LockMachine } from "@holdfast/lock";
import { appliedBy, readNodeLog, readNodeLogs, replay } from "../../src/history/committed-log.js";
import { until } from "../until.js";
import { wholeLog, WrittenLogs } from "../../src/history/written-logs.js";

const root = mkdtempSync(join(tmpdir(), "holdfast-written-"));
after(() => rmSync(root, { recursive: true, force: true }));

function entriesAfter(previous: { index: number; chain: number }, term: number, howMany: number): Entry[] {
  let { chain } = previous;
  return Array.from({ length: howMany }, (_, at) => {
    const index = (previous.index + 1 + at) as Entry["index"];
    chain = entryCodec.chainFor(chain, index, term as Entry["term"], "noop", new Uint8Array());
    return { index, term: term as Entry["term"], kind: "noop", payload: new Uint8Array(), chain };
  });
}

const start = { index: 0, chain: 0 };

describe("a whole log", () => {
  const old = entriesAfter(start, 1, 6);
  const fourth = old[3] as Entry;
  const anew = entriesAfter(fourth, 2, 4);
  const sixth = anew[1] as Entry;
  const blocks = [
    { previousChain: 0, entries: old },
    { previousChain: fourth.chain, entries: anew.slice(0, 2) },
  ];

  it("is put together along the chain: what was truncated is left out", () => {
    assert.deepEqual(wholeLog(sixth, anew.slice(2), blocks), [...old.slice(0, 4), ...anew]);
  });

  it("is its tail when there is no snapshot", () => {
    assert.deepEqual(wholeLog(start, old, []), old);
  });

  it("is none when an entry is missing", () => {
    assert.equal(wholeLog(sixth, anew.slice(2), blocks.slice(1)), null);
    assert.equal(wholeLog({ index: 6, chain: sixth.chain + 1 }, anew.slice(2), blocks), null);
  });
});

const nothing: StoreWrite = { hardState: null, truncateFrom: null, entries: [], chunk: null, removeThrough: null };

/** A directory whose node wrote entries and then a snapshot in the place of the first seven of them, seen by `written` as `node`'s or not. */
async function compacted(name: string, written: WrittenLogs | null, node = "n1", howMany = 10): Promise<string> {
  const directory = join(root, name);
  const configuration = { voters: [], outgoing: [], learners: [], removed: [] };
  const opened = await openDataDirectory({
    directory,
    nodeId: "n1",
    machineBootId: readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim(),
    randomInstance: () => "5f0c8a1b2d3e4f60",
  });
  const position = { term: 0 as never, index: 0 as never };
  const { store } = await opened.form("c0ffee", { position, chain: 0, configuration });
  const entries = entriesAfter(start, 1, howMany);
  await store.write({ ...nothing, hardState: { term: 1 as never, votedFor: null }, entries });
  written?.keep(node, directory);
  const seventh = entries[6] as Entry;
  const base = { position: { index: seventh.index, term: seventh.term }, chain: seventh.chain, configuration };
  const cursor = new LockMachine().beginSnapshot();
  const bytes = encodeSnapshotPiece(cursor.next(1_000) ?? []);
  await store.write({ ...nothing, chunk: { base, chunk: 0, bytes, done: true, origin: "own" } });
  await store.write({ ...nothing, removeThrough: seventh.index });
  await opened.close();
  return directory;
}

const final = { node: "n1", commitIndex: 10, lastApplied: 10 };

it("what a node has removed is read from the files that were kept of it", async () => {
  const written = new WrittenLogs(join(root, "kept"));
  const log = await readNodeLog(final, await compacted("seen", written), written);
  assert.equal(log.baseIndex, 7);
  assert.deepEqual(
    log.entries?.map(({ index }) => index),
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
  );
  const told = replay(log.entries ?? [], 10, new Set([7]));
  const kinds = appliedBy(log, 10, told).map((event) => (event.kind === "applied" ? event.index : event.kind));
  assert.deepEqual(kinds, ["started", 1, 2, 3, 4, 5, 6, 7, "installed", 8, 9, 10]);
  assert.equal(told[6]?.stateHash, log.baseHash);
  written.remove();
  assert.deepEqual(await written.blocksOf("n1"), []);
});

it("without them its snapshot and the entries behind it are all there is", async () => {
  const written = new WrittenLogs(join(root, "none"));
  const log = await readNodeLog(final, await compacted("unseen", null), written);
  assert.equal(log.entries, null);
  const kinds = appliedBy(log, 10, null).map((event) => (event.kind === "applied" ? event.index : event.kind));
  assert.deepEqual(kinds, ["started", "installed", 8, 9, 10]);
});

it("a log that no node wrote all of is put together from what all wrote", async () => {
  const written = new WrittenLogs(join(root, "together"));
  const directories: Readonly<Record<string, string>> = {
    n1: await compacted("farthest", null, "n1", 12),
    n2: await compacted("behind", null, "n2", 10),
  };
  const finals = ["n1", "n2"].map((node) => ({ ...final, node }));
  const read = (): ReturnType<typeof readNodeLogs> => readNodeLogs(finals, (node) => directories[node] ?? "", written);
  assert.deepEqual(
    (await read()).map(({ entries }) => entries),
    [null, null],
  );
  await compacted("seen-as-n2", written, "n2", 10);
  const [first, second] = await read();
  assert.equal(first?.entries?.length, 12);
  assert.equal(first.isOwn, false);
  assert.equal(second?.entries?.length, 10);
  assert.equal(second.isOwn, true);
  written.stop();
});

it("a file is kept from its first moment on, with what is written to it later", async () => {
  const directory = join(root, "live");
  mkdirSync(join(directory, "db"), { recursive: true });
  const written = new WrittenLogs(join(root, "links"));
  const file = join(directory, "db", "000003.log");
  writeFileSync(file, "");
  written.keep("n1", directory);
  written.keep("n1", directory);
  const other = join(await compacted("source", null), "db");
  for (const name of readdirSync(other))
    if (name.endsWith(".log")) appendFileSync(file, readFileSync(join(other, name)));
  rmSync(file);
  written.keep("n1", directory);
  assert.ok((await written.blocksOf("n1")).length > 0);
  written.keep("n1", join(root, "nowhere"));
  written.stop();
});

it("a new file is kept when it is made", async () => {
  const directory = join(root, "watched");
  mkdirSync(join(directory, "db"), { recursive: true });
  const written = new WrittenLogs(join(root, "seen-at-once"));
  written.keep("n1", directory);
  const other = join(await compacted("model", null), "db");
  const log = readdirSync(other).find((name) => name.endsWith(".log")) ?? "none";
  const file = join(directory, "db", "000007.log");
  writeFileSync(file, readFileSync(join(other, log)));
  await until("it is linked", () => statSync(file).nlink === 2);
  rmSync(file);
  assert.ok((await written.blocksOf("n1")).length > 0);
  written.stop();
});
