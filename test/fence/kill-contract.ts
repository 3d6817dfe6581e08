/** Writers and servers killed at any moment: fence and data stand both, or neither, and nothing that was acknowledged is lost. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { until } from "../harness/until.js";
import type { GuardedStore, Stored } from "./guarded-store.js";
import { freshResource, isStale, oneAtATime } from "./subject.js";
import type { Subject } from "./subject.js";
import { bodyUnder, lineUnder, severalOf } from "./work.js";
import { WriterProcess } from "./writer-process.js";

/** Each costs the start of a process. The moments differ by the acknowledgements awaited and by fractions of a write. */
const killsOfWriter = 4;
const killsOfServer = 3;

export function killTests(subject: Subject): void {
  for (const work of ["write", "append"] as const) {
    test(`a writer killed at any moment (${work}) leaves both or neither`, async () => {
      const { kind, place, store } = subject;
      for (let kill = 0; kill < killsOfWriter; kill += 1) {
        const resource = freshResource();
        const writer = new WriterProcess({ kind: kind.kind, address: place.address, resource, work });
        try {
          await writer.ready();
          writer.go();
          await until("the writer has written", () => writer.acknowledged() > kill * 3, 60_000, 1);
          assertWhole(work, await store.stored(resource), 0);
          await sleep(kill / 3);
        } finally {
          writer.kill();
        }
        await writer.ended();
        assertWhole(work, await store.stored(resource), writer.acknowledged());
        await assertUsable(store, resource);
      }
    });
  }

  severalTest(subject);
  const skip = subject.kind.crashes ? false : "there is no server of ours that could be killed";
  test("a server killed at any moment leaves both or neither", { skip }, async () => {
    const { kind, place } = subject;
    for (let kill = 0; kill < killsOfServer; kill += 1) {
      const work = kill % 2 === 0 ? "write" : "append";
      const resource = freshResource();
      const writer = new WriterProcess({ kind: kind.kind, address: place.address, resource, work });
      try {
        await writer.ready();
        writer.go();
        await until("the writer has written", () => writer.acknowledged() > 5 + kill * 7, 60_000, 1);
        await place.crash();
      } finally {
        writer.kill();
      }
      await writer.ended();
      const fresh = await kind.open(place.address, {});
      try {
        assertWhole(work, await fresh.stored(resource), writer.acknowledged());
        await assertUsable(fresh, resource);
      } finally {
        await fresh.close();
      }
    }
  });
}

/** In turn the writer and, where there is one of ours, the server. */
function severalTest(subject: Subject): void {
  const skip = subject.kind.changesSeveral ? false : oneAtATime;
  test("a kill in the midst of a transaction over several resources leaves all of them or none", { skip }, async () => {
    const { kind, place } = subject;
    for (let kill = 0; kill < killsOfWriter; kill += 1) {
      const resource = freshResource();
      const writer = new WriterProcess({ kind: kind.kind, address: place.address, resource, work: "write-all" });
      try {
        await writer.ready();
        writer.go();
        await until("the writer has written", () => writer.acknowledged() > kill * 3, 60_000, 1);
        if (kill % 2 === 1 && kind.crashes) await place.crash();
      } finally {
        writer.kill();
      }
      await writer.ended();
      const fresh = await kind.open(place.address, {});
      try {
        const all = await storedAll(fresh, severalOf(resource));
        for (const stored of all) assertWhole("write", stored, writer.acknowledged());
        assert.equal(new Set(all.map(({ token }) => token)).size, 1, JSON.stringify(all));
      } finally {
        await fresh.close();
      }
    }
  });
}

/** All at one moment: what a killed writer had sent may still come between two looks, once. */
async function storedAll(store: GuardedStore, resources: readonly string[]): Promise<Stored[]> {
  for (let last = ""; ; ) {
    const all: Stored[] = [];
    for (const resource of resources) all.push(await store.stored(resource));
    if (JSON.stringify(all) === last) return all;
    last = JSON.stringify(all);
  }
}

/** The writer goes through the tokens one by one, so the fence tells what the data must be. */
function assertWhole(work: "write" | "append", stored: Stored, acknowledged: number): void {
  const token = stored.token ?? 0;
  assert.ok(token >= acknowledged, `token ${acknowledged} was acknowledged, and ${token} is there`);
  if (work === "write") assert.equal(stored.body, token === 0 ? null : bodyUnder(token));
  else
    assert.deepEqual(
      stored.lines,
      Array.from({ length: token }, (_, at) => lineUnder(at + 1)),
    );
}

async function assertUsable(store: GuardedStore, resource: string): Promise<void> {
  // A statement that a killed writer had sent may still run: the next token comes after it, or closes the door to it.
  const next = ((await store.stored(resource)).token ?? 0) + 10;
  await store.write({ resource, token: next }, "after");
  await assert.rejects(store.write({ resource, token: next - 1 }, "late"), isStale(next - 1, next, resource));
  const { body, token } = await store.stored(resource);
  assert.deepEqual([body, token], ["after", next]);
}
