import assert from "node:assert/strict";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";

import { fileGuard } from "../../src/files.js";
import type { FileGuard, FileGuardOptions } from "../../src/files.js";
import { StaleTokenError } from "../../src/index.js";

let directory = "";
let files: FileGuard;
before(async () => {
  directory = await mkdtemp(path.join(tmpdir(), "holdfast-file-guard-"));
  files = fileGuard({ directory: path.join(directory, "state") });
});
after(() => rm(directory, { recursive: true, force: true }));

test("contents are bytes or text, and are copied when they are handed over", async () => {
  const lock = { resource: "bytes", token: 5 };
  const bytes = Buffer.from([0, 10, 255, 13]);
  const writing = files.write(lock, bytes);
  bytes.fill(1);
  await writing;
  assert.deepEqual(await files.read(lock), Buffer.from([0, 10, 255, 13]));
  assert.deepEqual(await files.update(lock, (current) => `${current?.length} bytes`), Buffer.from("4 bytes"));
  await files.write(lock, "");
  assert.deepEqual(await files.readNewest("bytes"), Buffer.alloc(0));
  await files.remove({ ...lock, token: 6 });
  assert.equal(await files.readNewest("bytes"), null);
  await assert.rejects(files.write(lock, "late"), StaleTokenError);
  assert.equal(await files.readNewest("never written"), null);
});

test("every name has a directory of its own, inside the given one", async () => {
  const root = path.join(directory, "names");
  const guard = fileGuard({ directory: root });
  const names = [
    "a",
    "A",
    "..",
    ".",
    "/",
    "a/b",
    "a_2fb",
    "_",
    "__",
    "ä",
    "a#0",
    "x".repeat(300),
    `${"x".repeat(299)}y`,
  ];
  for (const [at, resource] of names.entries()) await guard.write({ resource, token: at + 1 }, resource);
  for (const resource of names) assert.equal((await guard.readNewest(resource))?.toString(), resource);
  const folders = await readdir(root);
  assert.equal(
    new Set(folders.map((folder) => folder.toLowerCase())).size,
    names.length,
    "also where case doesn't count",
  );
  assert.deepEqual(await readdir(directory), ["names", "state"]);
});

test("odd arguments are refused by name", async () => {
  const lock = { resource: "odd", token: 5 };
  const rows: readonly (readonly [string, () => Promise<unknown>])[] = [
    ["lock.resource", () => files.write({ token: 5 }, "x")],
    ["lock.token", () => files.read({ resource: "odd", token: 0 })],
    ["content", () => files.write(lock, { a: 1 } as unknown as string)],
    ["change", () => files.update(lock, "x" as unknown as () => string)],
    ["change", () => files.update(lock, () => 5 as unknown as string)],
    ["resource", () => files.readNewest("")],
  ];
  for (const [argument, call] of rows) await assert.rejects(call(), { code: "invalid_argument", argument });
  assert.equal(await files.readNewest("odd"), null);
  const makes: readonly (readonly [string, object])[] = [
    ["options.directory", {}],
    ["options.directory", { directory: "" }],
    ["options.directory", { directory: "a\0b" }],
    ["options.keep", { directory, keep: 3 }],
    ["options.onStale", { directory, onStale: 3 }],
  ];
  for (const [argument, odd] of makes) assert.throws(() => fileGuard(odd as FileGuardOptions), { argument });
});
