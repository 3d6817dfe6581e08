/** Fences as real locks give them, at a guard: shared generations, slots, several names, and a lock whose record has vanished in between. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Holdfast } from "@holdfast/client";
import { Guard, StaleTokenError } from "@holdfast/fence";
import { memoryRegister } from "@holdfast/fence/http";
import { TestCluster } from "../harness/cluster.js";

let cluster: TestCluster;
let holdfast: Holdfast;
const notes = new Guard<string>(memoryRegister<string>());

before(async () => {
  cluster = await TestCluster.start({ nodes: 1 });
  holdfast = await cluster.connect({ ttlMs: 30_000 });
});
after(() => cluster?.close());

test("shared holders of one generation write under one token, until an exclusive one has come", async () => {
  const [a, b] = [await holdfast.acquire("s", { mode: "shared" }), await holdfast.acquire("s", { mode: "shared" })];
  assert.equal(a.token, b.token);
  await notes.write(a, "a");
  await notes.update(b, (current) => `${current} b`);
  // The generation goes on when the one that began it leaves.
  await a.release();
  await using c = await holdfast.acquire("s", { mode: "shared" });
  await notes.update(c, (current) => `${current} c`);
  const late = c.fence();
  await b.release();
  await c.release();
  const exclusive = await holdfast.acquire("s");
  assert.equal(await notes.read(exclusive), "a b c");
  await assert.rejects(notes.write(late, "late"), StaleTokenError);
  const exclusiveFence = exclusive.fence();
  await exclusive.release();
  await using next = await holdfast.acquire("s", { mode: "shared" });
  assert.ok(next.token > exclusiveFence.token);
  assert.equal(await notes.read(next), "a b c");
  for (const fence of [late, exclusiveFence]) await assert.rejects(notes.write(fence, "late"), StaleTokenError);
});

test("each slot has a register and generations of its own", async () => {
  const gpus = holdfast.semaphore("gpu", { slots: 2 });
  const [first, second] = [await gpus.acquire(), await gpus.acquire()];
  assert.deepEqual([first.fence().resource, second.fence().resource].sort(), ["gpu#0", "gpu#1"]);
  await notes.write(first, "first");
  await notes.write(second, "second");
  const late = first.fence();
  await first.release();
  await using third = await gpus.acquire();
  assert.deepEqual(third.fence(), { resource: late.resource, token: third.token });
  assert.ok(third.token > second.token && second.token > late.token);
  assert.equal(await notes.read(third), "first");
  await assert.rejects(notes.write(late, "late"), StaleTokenError);
  // The other place's holder is older than the newest of this one, and at work.
  await notes.write(second, "second again");
  await second.release();
});

test("a lock of several names has a fence for each, and one that nobody knew any more a greater token", async () => {
  const both = await holdfast.acquire(["acct:1", "acct:2"]);
  for (const name of ["acct:1", "acct:2"]) await notes.write(both.fence(name), name);
  const late = ["acct:1", "acct:2"].map((name) => both.fence(name));
  await both.release();
  assert.equal(await holdfast.inspect("acct:1"), null, "its record is gone");
  await using next = await holdfast.acquire("acct:1");
  assert.equal(await notes.read(next), "acct:1");
  await assert.rejects(notes.write(late[0] ?? next, "late"), StaleTokenError);
  // Nobody has been there since.
  await notes.write(late[1] ?? next, "still the newest");
});
