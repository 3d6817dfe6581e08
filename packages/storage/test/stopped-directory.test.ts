/** What is taken out of a stopped node's directory, and out of one that no node starts from. */
import assert from "node:assert/strict";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { readIdentity, writeIdentity } from "../src/identity.js";
import { StorageError, openStoppedDirectory } from "../src/index.js";
import type { Identity, StoppedDirectory } from "../src/index.js";
import {
  baseAt,
  bootId,
  clusterId,
  contentsOf,
  copyOf,
  newPath,
  nodeId,
  open,
  openFormed,
  writeSnapshot,
} from "./fixture.js";
import { hardState, storeWith } from "./store-fixture.js";

async function openIt(directory: string, force = false): Promise<StoppedDirectory> {
  return await openStoppedDirectory({ directory, machineBootId: bootId, force });
}

/** Entries 1 to 6, a snapshot of two chunks at 4; closed. */
async function stopped(): Promise<string> {
  const { directory, opened, store, entries } = await storeWith(4, 2);
  await writeSnapshot(store, baseAt(entries[3]), [Buffer.from("one"), Buffer.from("two")]);
  await opened.close();
  return directory;
}

async function assertWhole(taken: StoppedDirectory): Promise<void> {
  assert.deepEqual([taken.nodeId, taken.clusterId], [nodeId, clusterId]);
  assert.deepEqual(taken.restored.hardState, hardState);
  assert.deepEqual(
    taken.restored.entries.map((entry) => entry.index),
    [5, 6],
  );
  const { snapshot } = taken.store;
  assert.equal(snapshot?.base.position.index, 4);
  assert.equal(snapshot.chunks, 2);
  const read = async (chunk: number): Promise<string> =>
    String(await taken.store.readChunk(snapshot.base.position.index, chunk));
  assert.deepEqual([await read(0), await read(1), await read(2)], ["one", "two", "null"]);
}

function isStorageError(code: string, text: RegExp): (error: unknown) => boolean {
  return (error) => error instanceof StorageError && error.code === code && text.test(error.message);
}

describe("stopped directory", () => {
  it("gives what its node would start with, with force or without, and is started afterwards", async () => {
    const directory = await stopped();
    for (const force of [false, true]) {
      const taken = await openIt(directory, force);
      await assertWhole(taken);
      assert.equal(taken.problem, null);
      await assert.rejects(open(directory), isStorageError("locked", /in use/));
      await taken.close();
    }
    const { opened } = await openFormed(directory);
    await assert.rejects(openIt(directory), isStorageError("locked", /in use/));
    await assert.rejects(openIt(directory, true), isStorageError("locked", /in use/));
    await opened.close();
  });

  it("is refused in quarantine unless forced, and is not changed then", async () => {
    const directory = await stopped();
    const opened = await open(directory);
    await opened.quarantine("old copy: n2 knows more");
    await opened.close();
    await assert.rejects(openIt(directory), isStorageError("quarantined", /old copy/));
    const before = await contentsOf(directory);
    const taken = await openIt(directory, true);
    await assertWhole(taken);
    assert.equal(taken.problem, "old copy: n2 knows more");
    await taken.close();
    assert.deepEqual(await contentsOf(directory), before);
  });

  it("is taken by force when its identity can't be read, or its mark asks for more", async () => {
    const directory = await stopped();
    const unreadable = await copyOf(directory);
    await writeFile(join(unreadable, "identity"), "rubbish");
    await assert.rejects(openIt(await copyOf(unreadable)), isStorageError("damaged", /identity/));
    const taken = await openIt(unreadable, true);
    await assertWhole(taken);
    assert.match(taken.problem ?? "", /identity is damaged/);
    await taken.close();
    const behind = await copyOf(directory);
    const mark = await readFile(join(behind, "mark"));
    await writeFile(join(behind, "mark"), mark.fill(0));
    await assert.rejects(openIt(behind), isStorageError("damaged", /mark/));
    const forced = await openIt(behind, true);
    await assertWhole(forced);
    assert.match(forced.problem ?? "", /mark/, "the failed start has put it into quarantine");
    await forced.close();
  });

  it("is taken by force without an identity, and that is said", async () => {
    const directory = await stopped();
    await rm(join(directory, "identity"));
    await assert.rejects(openIt(directory), isStorageError("damaged", /identity is damaged: the file is missing/));
    const forced = await openIt(directory, true);
    assert.match(forced.problem ?? "", /identity is damaged: the file is missing, and there is a db/);
    await forced.close();
  });

  it("says once what its quarantine says too", async () => {
    const directory = await stopped();
    await rm(join(directory, "mark"));
    await assert.rejects(openIt(directory), isStorageError("damaged", /mark/));
    const mark = await openIt(directory, true);
    const found = mark.problem ?? "";
    await mark.close();
    const identity = (await readIdentity(directory)) as Identity;
    const again = found.split("; ").at(-1) ?? "";
    await writeIdentity(directory, { ...identity, quarantine: `db is damaged: ${again}` });
    const forced = await openIt(directory, true);
    assert.equal(forced.problem, `db is damaged: ${again}`);
    await forced.close();
  });

  it("must be there, and have been part of a cluster", async () => {
    await assert.rejects(openIt(await newPath()), isStorageError("io", /ENOENT/));
    const unformed = await newPath();
    await (await open(unformed)).close();
    await assert.rejects(openIt(unformed), isStorageError("io", /never part of a cluster/));
  });
});
