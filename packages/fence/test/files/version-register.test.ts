import assert from "node:assert/strict";
import fs, { mkdir, mkdtemp, readdir, rm, stat, utimes, writeFile } from "node:fs/promises";
import type { FileHandle } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";

import { VersionRegister } from "../../src/files/version-register.js";
import type { FencedRecord } from "../../src/index.js";

let root = "";
let lastFolder = 0;
before(async () => {
  root = await mkdtemp(path.join(tmpdir(), "holdfast-register-"));
});
after(() => rm(root, { recursive: true, force: true }));

interface Fresh {
  readonly register: VersionRegister;
  readonly folder: string;
}

function fresh(): Fresh {
  lastFolder += 1;
  const folder = path.join(root, `r${lastFolder}`, "of a lock");
  return { register: new VersionRegister(() => folder), folder };
}

function record(token: number, writeId = `w${token}`): FencedRecord<Buffer> {
  return { token, writeId, value: Buffer.from(`under ${token}`) };
}

/** Writes versions one after the other, as many as these tokens. */
async function write(register: VersionRegister, from: number, to: number): Promise<void> {
  for (let token = from; token <= to; token += 1) {
    const found = await register.read("doc");
    assert.equal(await register.compareAndSet("doc", found?.version ?? null, record(token)), true);
  }
}

/** A version that another writer left. */
async function leave(folder: string, number: number, token: number, previous: string | null): Promise<void> {
  await mkdir(folder, { recursive: true });
  const header = { holdfast: 1, resource: "doc", token, writeId: `left ${number}`, previous, bytes: 0 };
  await writeFile(path.join(folder, `${String(number).padStart(16, "0")}.v`), `${JSON.stringify(header)}\n`);
}

async function numbers(folder: string): Promise<number[]> {
  return (await readdir(folder)).map((name) => Number.parseInt(name, 10)).sort((a, b) => a - b);
}

test("a version is compared with the very one that was read", async () => {
  const { register } = fresh();
  assert.equal(await register.read("doc"), null);
  await write(register, 1, 2);
  const seen = await register.read("doc");
  assert.deepEqual([seen?.record, seen?.version], [record(2), { number: 2, writeId: "w2" }]);
  await write(register, 3, 3);
  assert.equal(await register.compareAndSet("doc", seen?.version ?? null, record(9)), false);
  assert.equal(await register.compareAndSet("doc", null, record(9)), false);
  assert.deepEqual((await register.read("doc"))?.record, record(3));
});

test("a few versions stay, and the number of a removed one is no free number", async () => {
  const { register, folder } = fresh();
  await write(register, 1, 2);
  const late = await register.read("doc");
  await write(register, 3, 60);
  assert.deepEqual(
    await numbers(folder),
    Array.from({ length: 16 }, (_, at) => 45 + at),
  );
  // Number 3 is free again. The writer that slept since version 2 makes it, finds out, and removes its own.
  assert.equal(await register.compareAndSet("doc", late?.version ?? null, record(2, "late")), false);
  assert.equal((await numbers(folder))[0], 45);
  assert.deepEqual((await register.read("doc"))?.record, record(60));
});

test("a late writer isn't deceived by another late one's file where its own predecessor was", async () => {
  const { register, folder } = fresh();
  await write(register, 1, 2);
  const late = await register.read("doc");
  await write(register, 3, 60);
  await leave(folder, 2, 1, "w1");
  assert.equal(await register.compareAndSet("doc", late?.version ?? null, record(2, "late")), false);
  assert.deepEqual((await numbers(folder)).slice(0, 2), [2, 45]);
});

test("a writer that was overtaken right after its link knows whether it was in place", async () => {
  const rows = [
    // Its successor names it: in place.
    { left: [{ number: 3, previous: "mine" }], expected: true },
    // The next number follows another: beside the sequence.
    { left: [{ number: 3, previous: "w2" }], expected: false },
    // The next number is missing, and higher ones are there: it was removed before this one came.
    { left: [{ number: 40, previous: "w39" }], expected: false },
    // Nobody came after it.
    { left: [], expected: true },
  ] as const;
  for (const { left, expected } of rows) {
    const { register, folder } = fresh();
    await mkdir(folder, { recursive: true });
    for (const { number, previous } of left) await leave(folder, number, 9, previous);
    const outcome = await register.compareAndSet("doc", { number: 1, writeId: "removed since" }, record(5, "mine"));
    assert.equal(outcome, expected);
    assert.equal((await numbers(folder)).includes(2), expected, "what isn't in place is removed");
  }
});

test("file, link and directory reach the disk in this order, and new directories too", async () => {
  const { register, folder } = fresh();
  const events: string[] = [];
  const probe = await fs.open(root, "r");
  const handles = Object.getPrototypeOf(probe) as FileHandle;
  await probe.close();
  const { sync } = handles;
  const { link } = fs;
  handles.sync = async function (this: FileHandle) {
    events.push((await this.stat()).isDirectory() ? "sync directory" : "sync file");
    return sync.call(this);
  };
  fs.link = async (...names) => {
    events.push("link");
    return link(...names);
  };
  syncBuiltinESMExports();
  try {
    await write(register, 1, 2);
  } finally {
    handles.sync = sync;
    fs.link = link;
    syncBuiltinESMExports();
  }
  const one = ["sync file", "link", "sync directory"];
  assert.deepEqual(events, ["sync directory", "sync directory", ...one, ...one]);
  assert.deepEqual(await numbers(folder), [1, 2]);
});

test("what stood in the way before the link comes as it is, and leaves nothing", async () => {
  const { register, folder } = fresh();
  await write(register, 1, 1);
  const { link } = fs;
  const failWith = (code: string): void => {
    fs.link = () => Promise.reject(Object.assign(new Error(code), { code }));
    syncBuiltinESMExports();
  };
  const seen = (await register.read("doc"))?.version ?? null;
  try {
    failWith("ENOSPC");
    const full = await register.compareAndSet("doc", seen, record(2));
    assert.ok(full instanceof Error && "code" in full && full.code === "ENOSPC", String(full));
    failWith("EPERM");
    const without = await register.compareAndSet("doc", seen, record(2));
    assert.ok(without instanceof Error && "code" in without && without.code === "incompatible", String(without));
  } finally {
    fs.link = link;
    syncBuiltinESMExports();
  }
  assert.deepEqual(await readdir(folder), ["0000000000000001.v"]);
});

test("temporary files of the dead are removed when they are old", async () => {
  const { register, folder } = fresh();
  await write(register, 1, 1);
  const [old, young] = ["old.tmp", "young.tmp"].map((name) => path.join(folder, name)) as [string, string];
  await writeFile(old, "");
  await writeFile(young, "");
  const longAgo = new Date(Date.now() - 25 * 60 * 60_000);
  await utimes(old, longAgo, longAgo);
  await write(register, 2, 2);
  await assert.rejects(stat(old), { code: "ENOENT" });
  await stat(young);
});

test("damage, and another resource's directory, are told", async () => {
  const odd = [
    "",
    "no JSON\n",
    '{"holdfast":2}\n',
    `${JSON.stringify({ holdfast: 1, resource: "doc", token: 5, writeId: "w", previous: null, bytes: 3 })}\nab`,
    `${JSON.stringify({ holdfast: 1, resource: "Doc", token: 5, writeId: "w", previous: null, bytes: 2 })}\nab`,
  ];
  for (const text of odd) {
    const { register, folder } = fresh();
    await mkdir(folder, { recursive: true });
    await writeFile(path.join(folder, "0000000000000001.v"), text);
    await assert.rejects(register.read("doc"), { code: "incompatible", resource: "doc" }, text);
  }
});
