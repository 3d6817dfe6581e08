/** What force takes out of damaged files: a true beginning of what was there, or nothing; and it says so. */
import assert from "node:assert/strict";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import type { Entry } from "@holdfast/raft";
import { StorageError, openStoppedDirectory } from "../src/index.js";
import type { StoppedDirectory } from "../src/index.js";
import {
  append,
  baseAt,
  bootId,
  clusterId,
  copyOf,
  databaseFiles,
  endOf,
  entriesAfter,
  firstBase,
  nodeId,
  nothing,
} from "./fixture.js";
import { openFormed, payloads, plain, term, writeSnapshot } from "./fixture.js";
import { hardState, storeWith } from "./store-fixture.js";

const chunks = [Buffer.alloc(700, 1), Buffer.alloc(700, 2)];

interface Made {
  readonly directory: string;
  readonly entries: readonly Entry[];
  readonly isSnapshotThere: boolean;
}

/** Entries 1 to 40, with a snapshot at 20 or none; all of it in a log, or the first 30 and the snapshot in tables. */
async function made(options: { readonly snapshot: boolean; readonly reopened: boolean }): Promise<Made> {
  const { directory, opened, store, entries } = await storeWith(10, 10, 10);
  if (options.snapshot) {
    const base = baseAt(entries[19]);
    await writeSnapshot(store, base, chunks);
    await store.write({ ...nothing, removeThrough: base.position.index });
  }
  const more = entriesAfter(endOf(entries), 2, payloads(10, 20, 77));
  if (options.reopened) {
    // LevelDB puts what it finds in a log into tables.
    await opened.close();
    const again = await openFormed(directory);
    await append(again.store, more);
    await again.opened.close();
  } else {
    await append(store, more);
    await opened.close();
  }
  return { directory, entries: [...entries, ...more], isSnapshotThere: options.snapshot };
}

async function force(directory: string): Promise<StoppedDirectory> {
  return await openStoppedDirectory({ directory, machineBootId: bootId, force: true });
}

/** Returns how many entries are left; null when it was refused. */
async function taken({ directory, entries, isSnapshotThere }: Made, what: string): Promise<number | null> {
  let forced: StoppedDirectory;
  try {
    forced = await force(directory);
  } catch (error) {
    assert.ok(error instanceof StorageError && error.code === "damaged", `${what}: ${String(error)}`);
    return null;
  }
  const { restored, store, problem } = forced;
  const { index } = restored.base.position;
  const isSnapshot = store.snapshot !== null;
  assert.deepEqual(plain(restored.base), plain(isSnapshot ? baseAt(entries[19]) : firstBase), what);
  const behind = entries.slice(index, index + restored.entries.length);
  assert.deepEqual(plain({ ...restored, entries: restored.entries }), plain({ ...restored, entries: behind }), what);
  if (isSnapshot) {
    const bytes = await Promise.all([0, 1].map((chunk) => store.readChunk(restored.base.position.index, chunk)));
    assert.deepEqual(
      bytes.map((each) => Buffer.from(each ?? [])),
      chunks,
      what,
    );
  } else assert.ok(!isSnapshotThere || restored.entries.length === 0 || index === 0, what);
  const left = index + restored.entries.length;
  if (left < entries.length || isSnapshotThere !== isSnapshot)
    assert.notEqual(problem, null, `${what}: it says nothing`);
  assert.ok(restored.hardState.term >= (behind.at(-1)?.term ?? 0), what);
  assert.deepEqual([forced.nodeId, forced.clusterId], [nodeId, clusterId]);
  await forced.close();
  return left;
}

async function withDamage(whole: Made, file: string, at: number, run: (damaged: Made) => Promise<void>): Promise<void> {
  const bytes = await readFile(file);
  const changed = Buffer.from(bytes);
  changed[at] = (changed[at] as number) ^ 0x40;
  await writeFile(file, changed);
  await run(whole);
  await writeFile(file, bytes);
}

describe("what is left of a damaged database", () => {
  for (const snapshot of [false, true]) {
    for (const reopened of [false, true]) {
      const name = `${snapshot ? "with" : "without"} a snapshot, ${reopened ? "in tables and a log" : "in a log"}`;
      it(`is a true beginning of it, wherever a byte has changed: ${name}`, async () => {
        const whole = await made({ snapshot, reopened });
        assert.equal(await taken(whole, "untouched"), 40);
        const counts = new Set<number | null>();
        for (const file of await databaseFiles(whole.directory, /\.(ldb|log)$/)) {
          const { length } = await readFile(file);
          for (let at = 3; at < length; at += 97) {
            await withDamage(whole, file, at, async (damaged) => {
              counts.add(await taken(damaged, `${file} at ${at}`));
            });
          }
        }
        const partly = [...counts].filter((count) => count !== null && count < 40);
        assert.ok(partly.length > 0, `some of it is taken: ${[...counts].join(" ")}`);
      });
    }
  }

  it("needs no MANIFEST and no CURRENT", async () => {
    const whole = await made({ snapshot: true, reopened: true });
    for (const file of await databaseFiles(whole.directory, /^(MANIFEST.*|CURRENT)$/)) await rm(file);
    assert.equal(await taken(whole, "without a MANIFEST"), 40);
  });

  it("is refused when its snapshot can't be read: the log alone leads nowhere", async () => {
    const whole = await made({ snapshot: true, reopened: true });
    const directory = await copyOf(whole.directory);
    for (const file of await databaseFiles(directory, /\.(ldb|log)$/)) {
      const bytes = await readFile(file);
      const at = bytes.indexOf(chunks[1] as Buffer);
      if (at < 0) continue;
      bytes[at] = 9;
      await writeFile(file, bytes);
    }
    await assert.rejects(force(directory), (error) => error instanceof StorageError && error.code === "damaged");
  });

  it("goes by the term that was promised, not by the last entry's", async () => {
    const whole = await made({ snapshot: false, reopened: false });
    const { opened, store } = await openFormed(whole.directory);
    await store.write({ ...nothing, hardState: { term: term(hardState.term + 5), votedFor: null } });
    await opened.close();
    await rm(join(whole.directory, "db", "CURRENT"));
    const forced = await force(whole.directory);
    assert.equal(forced.restored.hardState.term, hardState.term + 5);
    await forced.close();
  });
});
