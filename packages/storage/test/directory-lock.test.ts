import { Level } from "level";
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { StorageError } from "../src/index.js";
import { contentsOf, formNew, newPath, open, openFormed } from "./fixture.js";

async function expectLocked(directory: string, holder: number): Promise<void> {
  const before = await contentsOf(directory);
  await assert.rejects(open(directory), (error) => {
    assert(error instanceof StorageError);
    assert.equal(error.code, "locked");
    assert.equal(error.exitCode, 73);
    assert(error.message.includes(`in use by process ${holder};`), error.message);
    return true;
  });
  assert.deepEqual(await contentsOf(directory), before, "the refused start touches nothing");
}

test("one process, one opening, whatever the path is called", async () => {
  const { directory, opened } = await formNew();
  await expectLocked(directory, process.pid);
  const link = await newPath();
  await symlink(directory, link);
  await expectLocked(`${link}/`, process.pid);
  await opened.close();
  const again = await openFormed(`${link}/../${link.split("/").at(-1)}`);
  await again.opened.close();
});

test("another process holds it until it is killed", async () => {
  const { directory, opened } = await formNew();
  await opened.close();
  const child = spawn(process.execPath, [fileURLToPath(new URL("./hold-child.js", import.meta.url)), directory], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    await once(child.stdout, "data");
    assert(child.pid !== undefined);
    await expectLocked(directory, child.pid);
  } finally {
    child.kill("SIGKILL");
  }
  await once(child, "exit");
  await (await openFormed(directory)).opened.close();
});

test("a database that another program has open", async () => {
  const { directory, opened } = await formNew();
  await opened.close();
  const other = new Level(join(directory, "db"), { createIfMissing: false });
  await other.open();
  await assert.rejects(
    open(directory),
    (error) => error instanceof StorageError && error.code === "locked" && /db is in use/.test(error.message),
  );
  await other.close();
  await (await openFormed(directory)).opened.close();
});

test("two processes start at once: one wins", async () => {
  const directory = await newPath();
  const starts = await Promise.allSettled([open(directory), open(directory), open(directory)]);
  const won = starts.flatMap((start) => (start.status === "fulfilled" ? [start.value] : []));
  assert.equal(won.length, 1);
  for (const start of starts)
    if (start.status === "rejected") assert(start.reason instanceof StorageError && start.reason.code === "locked");
  await won[0]?.close();
});

test("the lock's own files may be damaged, or gone", async () => {
  const { directory, opened } = await formNew();
  await opened.close();
  const lock = (name: string): string => join(directory, "lock", name);
  await writeFile(lock("CURRENT"), "");
  await (await openFormed(directory)).opened.close();
  await writeFile(lock("CURRENT"), "MANIFEST-000777\n");
  await (await openFormed(directory)).opened.close();
  const manifest = (await readFile(lock("CURRENT"), "latin1")).trim();
  await writeFile(lock(manifest), "nothing of use");
  await (await openFormed(directory)).opened.close();
  await rm(join(directory, "lock"), { recursive: true });
  await (await openFormed(directory)).opened.close();
});

test("a lock that was repaired still is one", async () => {
  const { directory, opened } = await formNew();
  await opened.close();
  const file = join(directory, "lock", "LOCK");
  const { ino } = await stat(file);
  await writeFile(join(directory, "lock", "CURRENT"), "junk");
  const again = await openFormed(directory);
  assert.equal((await stat(file)).ino, ino, "it is the same file: who waits for the old one waits for this");
  await expectLocked(directory, process.pid);
  await again.opened.close();
});
