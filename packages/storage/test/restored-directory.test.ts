/** A restored directory is one that a node starts from, or one that none does. */
import assert from "node:assert/strict";
import { mkdir, readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { DirectoryNotEmptyError, StorageError, makeRestoredDirectory } from "../src/index.js";
import {
  bootId,
  configuration,
  copyOf,
  index,
  newPath,
  nodeId,
  open,
  openFormed,
  readSnapshot,
  term,
} from "./fixture.js";

const base = { position: { term: term(5), index: index(2 ** 50) }, chain: 0, configuration };
const chunks = [Buffer.from("one"), Buffer.from("two"), Buffer.from("three")];

async function restore(directory: string): Promise<void> {
  const names = { nodeId, instance: "another", clusterId: "anew", machineBootId: bootId };
  await makeRestoredDirectory({ directory, ...names, base, chunks });
}

describe("restored directory", () => {
  it("is formed, with the snapshot, no entries and the base's term", async () => {
    const directory = await newPath();
    await restore(directory);
    assert.deepEqual((await readdir(directory)).sort(), ["db", "identity", "mark"]);
    for (let start = 0; start < 2; start += 1) {
      const { opened, store, restored } = await openFormed(directory);
      assert.deepEqual([opened.identity.clusterId, opened.identity.instance], ["anew", "another"]);
      assert.deepEqual(restored, { hardState: { term: 5, votedFor: null }, base, entries: [] });
      assert.deepEqual(
        (await readSnapshot(store)).map((chunk) => Buffer.from(chunk).toString()),
        ["one", "two", "three"],
      );
      await opened.close();
    }
  });

  it("is made in an empty directory, the root of a file system too, and in no other", async () => {
    const directory = await newPath();
    await mkdir(join(directory, "lost+found"), { recursive: true });
    await restore(directory);
    await assert.rejects(restore(directory), DirectoryNotEmptyError);
    const used = await newPath();
    await mkdir(used);
    await writeFile(join(used, "precious"), "");
    await assert.rejects(restore(used), DirectoryNotEmptyError);
    assert.deepEqual(await readdir(used), ["precious"]);
  });

  it("is refused when the restore died before its last step, and restored into once it is emptied", async () => {
    const whole = await newPath();
    await restore(whole);
    const deaths: ((directory: string) => Promise<void>)[] = [
      // Everything is still in the folder where it is built.
      async (directory) => {
        await mkdir(join(directory, "restoring"));
        for (const name of ["db", "mark", "identity"])
          await rename(join(directory, name), join(directory, "restoring", name));
      },
      async (directory) => {
        await mkdir(join(directory, "restoring"));
        for (const name of ["mark", "identity"])
          await rename(join(directory, name), join(directory, "restoring", name));
      },
      async (directory) => {
        await mkdir(join(directory, "restoring"));
        await rename(join(directory, "identity"), join(directory, "restoring", "identity"));
      },
    ];
    for (const die of deaths) {
      const directory = await copyOf(whole);
      await die(directory);
      await assert.rejects(restore(directory), DirectoryNotEmptyError);
      const isRefused = (error: unknown): boolean =>
        error instanceof StorageError && error.code === "damaged" && /restore into this directory/.test(error.message);
      await assert.rejects(open(directory), isRefused);
      await assert.rejects(open(directory), /quarantine/);
      for (const name of await readdir(directory)) await rm(join(directory, name), { recursive: true });
      await restore(directory);
    }
  });
});
