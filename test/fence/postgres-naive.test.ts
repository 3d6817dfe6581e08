/**
 * What people write instead of a guard, in the one interleaving that matters: the old holder is stopped between its check and its
 * write, and its successor saves meanwhile. Each naive form loses the successor's save; the guard, stopped at the same place, doesn't.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { StaleTokenError } from "@holdfast/fence";

import { debianPostgres, skipWithoutDebianPostgres } from "../harness/postgres.js";
import type { TestPool } from "../harness/postgres.js";
import { newDocument, storedDocument, useDatabase } from "./database.js";
import type { Database } from "./database.js";

const lost = { body: "old holder", edits: 0, fence: "10" };
const kept = { body: "new holder", edits: 0, fence: "11" };

/** A save of the old holder (token 10), which calls `pause` where it is stopped. */
type Save = (pool: TestPool, id: number, pause: () => Promise<void>) => Promise<void>;

describe("checks that are apart from their write lose an update", {
  skip: skipWithoutDebianPostgres(),
  timeout: 60_000,
}, () => {
  const database = useDatabase(debianPostgres);
  naiveForms(database);
  guardedForms(database);
});

/** Runs `save` and, at its pause, the whole save of the new holder. Resolves with what is stored at the end. */
async function interleave({ documents, pool }: Database, save: Save): Promise<unknown> {
  const id = await newDocument(pool, 9);
  let pauses = 0;
  const pause = async (): Promise<void> => {
    pauses += 1;
    await documents.update({ token: 11 }, id, { body: "new holder" });
    assert.deepEqual(await storedDocument(pool, id), kept, "the new holder's save was acknowledged");
  };
  await save(pool, id, pause);
  assert.equal(pauses, 1, "the old holder was stopped at its worst moment");
  return storedDocument(pool, id);
}

function naiveForms(database: Database): void {
  test("if (token > read) write: lost", async () => {
    const after = await interleave(database, async (pool, id, pause) => {
      const { rows } = await pool.query("SELECT fence FROM documents WHERE id = $1", [id]);
      if (10 > Number(rows[0]?.["fence"])) {
        await pause();
        await pool.query("UPDATE documents SET body = 'old holder', fence = 10 WHERE id = $1", [id]);
      }
    });
    assert.deepEqual(after, lost);
  });

  test("the same in one transaction: lost, for READ COMMITTED doesn't keep what was read from changing", async () => {
    const after = await interleave(database, async (pool, id, pause) => {
      const client = await pool.connect();
      await client.query("BEGIN");
      const { rows } = await client.query("SELECT fence FROM documents WHERE id = $1", [id]);
      if (10 > Number(rows[0]?.["fence"])) {
        await pause();
        await client.query("UPDATE documents SET body = 'old holder', fence = 10 WHERE id = $1", [id]);
      }
      await client.query("COMMIT");
      client.release();
    });
    assert.deepEqual(after, lost);
  });

  test("lock.assertHeld() right before a plain write: lost", async () => {
    const after = await interleave(database, async (pool, id, pause) => {
      const lock = leaseUntil(1_000);
      lock.assertHeld();
      await pause();
      lock.nowMs = 12_000;
      await pool.query("UPDATE documents SET body = 'old holder', fence = 10 WHERE id = $1", [id]);
      assert.throws(() => lock.assertHeld(), "the holder finds out after its write");
    });
    assert.deepEqual(after, lost);
  });
}

function guardedForms(database: Database): void {
  // A 25: whoever is cut off goes on writing; only the resource can refuse it.
  test("the guarded update, stopped at the same place: refused, nothing lost", async () => {
    const after = await interleave(database, async (_, id, pause) => {
      const lock = leaseUntil(1_000);
      lock.assertHeld();
      await pause();
      lock.nowMs = 12_000;
      await assert.rejects(database.documents.update({ token: 10 }, id, { body: "old holder" }), isStale);
    });
    assert.deepEqual(after, kept);
  });

  test("the guarded transaction, stopped before it or in it: nothing lost", async () => {
    const before = await interleave(database, async (_, id, pause) => {
      await pause();
      await assert.rejects(
        database.documents.transaction({ token: 10 }, id, () => assert.fail("the body ran")),
        isStale,
      );
    });
    assert.deepEqual(before, kept);
    assert.deepEqual(await stoppedInside(database), kept);
  });
}

/** Inside the body the old holder has the row's lock: the new holder's save comes after it and stands at the end. */
async function stoppedInside({ documents, pool }: Database): Promise<unknown> {
  const id = await newDocument(pool, 9);
  let newSave: Promise<unknown> = Promise.resolve();
  await documents.transaction({ token: 10 }, id, async (tx) => {
    newSave = documents.update({ token: 11 }, id, { body: "new holder" });
    await tx.query("UPDATE documents SET body = 'old holder' WHERE id = $1", [id]);
  });
  await newSave;
  return storedDocument(pool, id);
}

function isStale(error: unknown): boolean {
  return error instanceof StaleTokenError && error.presented === 10 && error.highest === 11;
}

/** A lock handle's clock: what assertHeld can know, and when it can know it. */
function leaseUntil(deadlineMs: number): { nowMs: number; assertHeld(): void } {
  return {
    nowMs: 0,
    assertHeld() {
      if (this.nowMs >= deadlineMs) throw new Error("lock_lost");
    },
  };
}
