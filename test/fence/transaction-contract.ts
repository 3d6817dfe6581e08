/** What guarded transactions promise on any PostgreSQL, beside what store-contract.ts tests of every store. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { StaleTokenError } from "@holdfast/fence";
import { postgresGuard } from "@holdfast/fence/postgres";
import type { Database } from "./database.js";
import { isStale, newDocument, storedDocument, tokenMax } from "./database.js";

export function fenceTableTests(database: Database): void {
  const saveIn = (resource: string, token: number, id: number, body: string, fail = false): Promise<void> =>
    database.fences.transaction({ resource, token }, async (tx) => {
      await tx.query("UPDATE documents SET body = $2 WHERE id = $1", [id, body]);
      await tx.query("INSERT INTO revisions VALUES ($1, $2)", [id, body]);
      if (fail) throw new Error("changed my mind");
    });
  const revisionsOf = async (id: number): Promise<unknown> =>
    (await database.pool.query("SELECT body FROM revisions WHERE document = $1 ORDER BY body", [id])).rows.map(
      (row) => row["body"],
    );

  test("two tables change together under one fence row, or not at all", async () => {
    const id = await newDocument(database.pool);
    const name = `doc:${id}`;
    await saveIn(name, 9, id, "b9");
    await saveIn(name, 10, id, "c10");
    await saveIn(name, 10, id, "d10");
    await assert.rejects(saveIn(name, 9, id, "late"), isStale(9, 10));
    await assert.rejects(saveIn(name, 11, id, "failed", true), { message: "changed my mind" });
    assert.deepEqual(await storedDocument(database.pool, id), { body: "d10", edits: 0, fence: null });
    assert.deepEqual(await revisionsOf(id), ["b9", "c10", "d10"]);
    // What was rolled back raised nothing.
    await saveIn(name, 10, id, "e10");
    await saveIn(name, tokenMax, id, "f");
    await assert.rejects(saveIn(name, tokenMax - 1, id, "late"), isStale(tokenMax - 1, tokenMax));
  });

  test("of several fences one stale token stops all", async () => {
    const { fences, pool } = database;
    await fences.transaction({ resource: "several:b", token: 20 }, () => 1);
    const both = [
      { resource: "several:b", token: 12 },
      { resource: "several:a", token: 12 },
    ];
    await assert.rejects(
      fences.transaction(both, () => assert.fail("the body ran")),
      isStale(12, 20),
    );
    const { rows } = await pool.query(
      "SELECT resource, token::text FROM holdfast_fences WHERE resource LIKE 'several:%'",
    );
    assert.deepEqual(rows, [{ resource: "several:b", token: "20" }]);
  });
}

export function transactionTests(database: Database): void {
  test("a row's own fence guards a transaction as well, and single updates share it", async () => {
    const { documents, pool } = database;
    const id = await newDocument(pool);
    await documents.transaction({ token: 9 }, id, async (tx) => {
      await tx.query("UPDATE documents SET edits = edits + 1 WHERE id = $1", [id]);
      await tx.query("INSERT INTO revisions VALUES ($1, 'nine')", [id]);
    });
    await assert.rejects(documents.update({ token: 8 }, id, { body: "late" }), isStale(8, 9));
    await documents.update({ token: 10 }, id, { body: "ten" });
    await assert.rejects(
      documents.transaction({ token: 9 }, id, () => assert.fail("the body ran")),
      isStale(9, 10),
    );
    assert.deepEqual(await storedDocument(pool, id), { body: "ten", edits: 1, fence: "10" });
  });

  test("the row is found by the lock's name", async () => {
    const { pool } = database;
    const id = await newDocument(pool);
    const options = { table: "documents", key: "id", fence: "fence", keyFor: (name: string) => Number(name.slice(4)) };
    await postgresGuard(pool, options).transaction({ resource: `doc:${id}`, token: 4 }, () => 1);
    assert.deepEqual(await storedDocument(pool, id), { body: "first", edits: 0, fence: "4" });
  });

  test("a body that swallows a failed statement, or commits by itself, is told", async () => {
    const { fences, pool } = database;
    const id = await newDocument(pool);
    const swallowing = fences.transaction({ resource: `doc:${id}`, token: 1 }, async (tx) => {
      await tx.query("UPDATE documents SET body = 'x' WHERE id = $1", [id]);
      await tx.query("SELECT 1 / 0").catch(() => undefined);
    });
    await assert.rejects(swallowing, { code: "25P02" });
    assert.deepEqual(await storedDocument(pool, id), { body: "first", edits: 0, fence: null });
    for (const end of ["ROLLBACK", "COMMIT", "ROLLBACK; BEGIN"]) {
      const own = fences.transaction({ resource: `doc:${id}`, token: 1 }, async (tx) => {
        await tx.query(end);
        if (end.endsWith("BEGIN")) await tx.query("UPDATE documents SET body = 'not fenced' WHERE id = $1", [id]);
      });
      await assert.rejects(own, { code: "invalid_argument", argument: "body" }, end);
    }
    assert.deepEqual(await storedDocument(pool, id), { body: "first", edits: 0, fence: null });
    await fences.transaction({ resource: `doc:${id}`, token: 2 }, async (tx) => {
      await tx.query("SAVEPOINT s; UPDATE documents SET body = 'y'; ROLLBACK TO s");
    });
  });

  test("a fence can be taken in a transaction of one's own", async () => {
    const { documents, fences, pool } = database;
    const id = await newDocument(pool, 5);
    const client = await pool.connect();
    await client.query("BEGIN");
    await documents.take(client, { token: 6 }, id);
    await fences.take(client, { resource: `doc:${id}`, token: 6 });
    await client.query("COMMIT; BEGIN");
    await assert.rejects(documents.take(client, { token: 5 }, id), isStale(5, 6));
    await assert.rejects(fences.take(client, { resource: `doc:${id}`, token: 5 }), isStale(5, 6));
    await client.query("ROLLBACK");
    client.release();
  });
}

export function concurrentTransactionTests(database: Database): void {
  test("concurrent read-modify-writes under one fence row lose nothing that was accepted", async () => {
    const { fences, pool } = database;
    const id = await newDocument(pool);
    let accepted = 0;
    await Promise.all(
      Array.from({ length: 40 }, async (_, at) => {
        const lock = { resource: `doc:${id}`, token: 1 + ((at * 7) % 10) };
        try {
          await fences.transaction(lock, async (tx) => {
            const { rows } = await tx.query<{ edits: number }>("SELECT edits FROM documents WHERE id = $1", [id]);
            await tx.query("UPDATE documents SET edits = $2, fence = $3 WHERE id = $1", [
              id,
              (rows[0]?.edits ?? 0) + 1,
              lock.token,
            ]);
          });
          accepted += 1;
        } catch (error) {
          assert.ok(error instanceof StaleTokenError, String(error));
        }
      }),
    );
    const { rows } = await pool.query("SELECT fence::text AS fence FROM history WHERE id = $1 ORDER BY at", [id]);
    const tokens = rows.map((row) => Number(row["fence"]));
    assert.deepEqual(
      tokens,
      [...tokens].sort((a, b) => a - b),
    );
    assert.deepEqual(await storedDocument(pool, id), { body: "first", edits: accepted, fence: "10" });
    assert.ok(accepted >= 4 && accepted <= 40);
  });
}
