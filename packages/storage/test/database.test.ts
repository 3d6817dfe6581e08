import assert from "node:assert/strict";
import { readdir, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { createDatabase, openDatabase } from "../src/database.js";
import { watchNewNames } from "../src/new-names.js";
import { newPath } from "./fixture.js";

const key = Buffer.from("k");
const put = { type: "put", key, value: Buffer.from("v") } as const;

test("a database that isn't there is not made, and one that is there is not made anew", async () => {
  const path = await newPath();
  await assert.rejects(openDatabase(path));
  const made = await createDatabase(path);
  await made.writeSynced([put]);
  await made.close();
  await assert.rejects(createDatabase(path));
  const opened = await openDatabase(path);
  assert.equal((await opened.get(key))?.toString(), "v");
  assert.equal(await opened.get(Buffer.from("other")), null);
  await opened.close();
  assert((await readdir(path)).every((name) => !name.endsWith(".sst")));
});

test("one write at a time", async () => {
  const database = await createDatabase(await newPath());
  const first = database.writeSynced([put]);
  await assert.rejects(database.writeSynced([put]), /one write is in flight at a time/);
  await first;
  await database.writeSynced([put]);
  await database.close();
});

test("a new name in a directory is seen, also in the tick of the last one", async () => {
  const path = await newPath();
  const database = await createDatabase(path);
  await database.close();
  const names = await watchNewNames(path);
  assert.equal(await names.syncIfChanged(), true, "before it is known to be settled");
  for (let tries = 0; await names.syncIfChanged(); tries++) {
    assert(tries < 200, "it settles when nothing changes");
    await delay(5);
  }
  await writeFile(join(path, "a"), "");
  assert.equal(await names.syncIfChanged(), true);
  // The same time of change as at the last look: as if made in the same tick of the file system's clock.
  const now = new Date();
  await utimes(path, now, now);
  assert.equal(await names.syncIfChanged(), true);
  assert.equal(await names.syncIfChanged(), true, "a name made just now might have the same time");
  await names.close();
});
