/** What the guard of rows promises on any PostgreSQL, beside what store-contract.ts tests of every store. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ResourceMissingError, StaleTokenError } from "@holdfast/fence";
import { fenceTableSql, postgresFences, postgresGuard } from "@holdfast/fence/postgres";
import type { Database } from "./database.js";
import { isStale, newDocument, storedDocument } from "./database.js";

export function rowTests(database: Database): void {
  test("an equal token is accepted again, a lower one is refused and changes nothing, a higher one is remembered", async () => {
    const { documents, pool } = database;
    const id = await newDocument(pool);
    const row = await documents.update({ token: 9 }, id, { body: "nine" });
    assert.deepEqual(row, { id, body: "nine", edits: 0, fence: "9" });
    await documents.update({ token: 9 }, id, { body: "nine again" });
    // As strings "10" is below "9".
    await documents.update({ token: 10 }, id, { body: "ten", edits: 3 });
    await assert.rejects(
      documents.update({ token: 9, resource: "doc" }, id, { body: "late", edits: 4 }),
      isStale(9, 10),
    );
    assert.deepEqual(await storedDocument(pool, id), { body: "ten", edits: 3, fence: "10" });
  });

  test("a missing row is told apart from a stale token, and can be made", async () => {
    const { documents, pool } = database;
    const id = await newDocument(pool);
    await pool.query("DELETE FROM documents WHERE id = $1", [id]);
    for (const call of [
      () => documents.update({ token: 5 }, id, { body: "x" }),
      () => documents.read({ token: 5 }, id),
      () => documents.transaction({ token: 5 }, id, () => assert.fail("the body ran")),
    ]) {
      await assert.rejects(
        call,
        (error) => error instanceof ResourceMissingError && error.resource === `documents/${id}`,
      );
    }
    await documents.upsert({ token: 5 }, id, { body: "made" });
    await documents.upsert({ token: 6 }, id, { body: "changed" });
    await assert.rejects(documents.upsert({ token: 5 }, id, { body: "late" }), isStale(5, 6));
    assert.deepEqual(await storedDocument(pool, id), { body: "changed", edits: 0, fence: "6" });
  });
}

export function oddTests(database: Database): void {
  test("names and keys are data, however they look", async () => {
    const { pool } = database;
    const table = 'odd"; DROP TABLE documents; --';
    const quoted = `"${table.replaceAll('"', '""')}"`;
    await pool.query(
      `CREATE TABLE ${quoted} ("k""; --" text PRIMARY KEY, "$1" text, "fence'" bigint NOT NULL DEFAULT 0)`,
    );
    const odd = postgresGuard(pool, { table, key: 'k"; --', fence: "fence'" });
    const key = "'; DROP TABLE documents; --";
    await odd.upsert({ token: 3 }, key, { $1: "'); DROP TABLE documents; --" });
    await odd.update({ token: 4 }, key, { $1: "$2" });
    await assert.rejects(odd.update({ token: 3 }, key, { $1: "late" }), isStale(3, 4));
    await assert.rejects(odd.update({ token: 5 }, "' OR true --", { $1: "all" }), { code: "resource_missing" });
    const { rows } = await pool.query(`SELECT * FROM ${quoted}`);
    assert.deepEqual(rows, [{ 'k"; --': key, $1: "$2", "fence'": "4" }]);

    const schemaName = "s.x";
    await pool.query(`CREATE SCHEMA "${schemaName}"; ${fenceTableSql({ schema: schemaName, table })}`);
    const fences = postgresFences(pool, { schema: schemaName, table });
    await fences.transaction({ resource: key, token: 8 }, () => 1);
    await assert.rejects(
      fences.transaction({ resource: key, token: 7 }, () => 1),
      isStale(7, 8),
    );
    assert.equal((await pool.query("SELECT count(*)::int AS n FROM documents")).rows.length, 1);
  });

  test("a fence column that can't hold a token, or compares otherwise than numbers, is an error and no hole", async () => {
    const { pool } = database;
    await pool.query(
      "CREATE TABLE small (id integer PRIMARY KEY, body text, fence integer DEFAULT 0); INSERT INTO small VALUES (1, 'first')",
    );
    const small = postgresGuard(pool, { table: "small", key: "id", fence: "fence" });
    await small.update({ token: 2 ** 31 - 1 }, 1, { body: "fits" });
    await assert.rejects(small.update({ token: 2 ** 31 }, 1, { body: "too great" }), { code: "22003" });
    await pool.query(
      "CREATE TABLE texts (id integer PRIMARY KEY, body text, fence text DEFAULT '0'); INSERT INTO texts VALUES (1, 'first')",
    );
    const texts = postgresGuard(pool, { table: "texts", key: "id", fence: "fence" });
    await assert.rejects(texts.update({ token: 5 }, 1, { body: "x" }), { code: "42804" });
    for (const [table, body] of [
      ["small", "fits"],
      ["texts", "first"],
    ]) {
      assert.deepEqual((await pool.query(`SELECT body FROM ${table}`)).rows, [{ body }]);
    }
  });

  test("a row that something else keeps from being written is told, and so is a key that isn't unique", async () => {
    const { pool } = database;
    await pool.query(`
      CREATE TABLE frozen (id integer PRIMARY KEY, body text, fence bigint DEFAULT 0);
      INSERT INTO frozen VALUES (1, 'first');
      CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
      CREATE TRIGGER nothing BEFORE UPDATE ON frozen FOR EACH ROW EXECUTE FUNCTION nothing();
      CREATE TABLE twins (id integer, body text, fence bigint DEFAULT 0);
      INSERT INTO twins VALUES (1, 'a'), (1, 'b')`);
    for (const table of ["frozen", "twins"]) {
      const guard = postgresGuard(pool, { table, key: "id", fence: "fence" });
      await assert.rejects(guard.update({ token: 5 }, 1, { body: "x" }), { code: "incompatible" }, table);
      await assert.rejects(
        guard.transaction({ token: 5 }, 1, () => 1),
        { code: "incompatible" },
        table,
      );
    }
  });
}

export function concurrentUpdateTests(database: Database): void {
  test("100 concurrent writers: accepted tokens never fall, and no accepted update is lost", async () => {
    const { documents, pool } = database;
    const id = await newDocument(pool);
    const accepted: { fence: string; body: string }[] = [];
    let refused = 0;
    // Five writers to a token, and the tokens mixed.
    const writers = Array.from({ length: 100 }, (_, at) => ({ token: 1 + ((at * 37) % 20), body: `writer ${at}` }));
    await Promise.all(
      writers.map(async ({ token, body }) => {
        try {
          const row = await documents.update<{ body: string; fence: string }>({ token }, id, { body });
          assert.equal(row.body, body);
          accepted.push({ fence: row.fence, body });
        } catch (error) {
          assert.ok(
            error instanceof StaleTokenError && error.presented === token && error.highest > token,
            String(error),
          );
          refused += 1;
        }
      }),
    );
    const { rows } = await pool.query("SELECT fence::text, body FROM history WHERE id = $1 ORDER BY at", [id]);
    const tokens = rows.map((row) => Number(row["fence"]));
    assert.deepEqual(
      tokens,
      [...tokens].sort((a, b) => a - b),
      "accepted tokens never fall",
    );
    const byBody = (a: object, b: object): number => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1);
    assert.deepEqual([...rows].sort(byBody), accepted.sort(byBody), "history and answers agree");
    assert.equal(accepted.length + refused, 100);
    assert.ok(
      accepted.length >= 5 && refused >= 1,
      `the tokens were mixed: ${accepted.length} accepted, ${refused} refused`,
    );
    const last = rows.at(-1);
    assert.deepEqual(await storedDocument(pool, id), { body: last?.["body"], edits: 0, fence: "20" });
  });
}
