/** What the PostgreSQL guards promise, on any server. Registered once for each database. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { ResourceMissingError, StaleTokenError } from "@holdfast/fence";
import { fenceTableSql, postgresFences, postgresGuard } from "@holdfast/fence/postgres";
import type { PostgresFences, PostgresGuard } from "@holdfast/fence/postgres";

import type { TestPool, TestPostgres } from "../harness/postgres.js";

export interface Database {
  postgres: TestPostgres;
  pool: TestPool;
  documents: PostgresGuard;
  fences: PostgresFences;
}

export const tokenMax = Number.MAX_SAFE_INTEGER;

/** Tables `documents` (with a history that a trigger keeps, in the order of the writes to a row) and `revisions`. */
const schema = `
  CREATE TABLE documents (id integer PRIMARY KEY, body text, edits integer NOT NULL DEFAULT 0, fence bigint);
  CREATE TABLE revisions (document integer NOT NULL, body text NOT NULL);
  CREATE TABLE history (at bigserial PRIMARY KEY, id integer NOT NULL, fence bigint, body text);
  CREATE FUNCTION keep_history() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      INSERT INTO history (id, fence, body) VALUES (NEW.id, NEW.fence, NEW.body);
      RETURN NEW;
    END $$;
  CREATE TRIGGER history AFTER UPDATE ON documents FOR EACH ROW EXECUTE FUNCTION keep_history();
  ${fenceTableSql()}`;

/** A database with the tables of these tests, started before them and stopped after them. */
export function useDatabase(start: () => Promise<TestPostgres>): Database {
  const database = {} as Database;
  before(async () => {
    database.postgres = await start();
    database.pool = database.postgres.pool();
    await database.pool.query(schema);
    database.documents = postgresGuard(database.pool, { table: "documents", key: "id", fence: "fence" });
    database.fences = postgresFences(database.pool);
  });
  after(() => database.postgres?.stop());
  return database;
}

let lastId = 0;

/** A fresh document, so that tests don't meet. Its fence is NULL, as in a table that got its fence column later. */
export async function newDocument(pool: TestPool, fence: number | null = null): Promise<number> {
  lastId += 1;
  await pool.query("INSERT INTO documents (id, body, fence) VALUES ($1, 'first', $2)", [lastId, fence]);
  return lastId;
}

/** The row, its int8 as text. */
export async function storedDocument(pool: TestPool, id: number): Promise<unknown> {
  const { rows } = await pool.query("SELECT body, edits, fence::text FROM documents WHERE id = $1", [id]);
  return rows[0];
}

export function guardContract(title: string, start: () => Promise<TestPostgres>, skip: string | false): void {
  describe(title, { skip, timeout: 120_000 }, () => {
    const database = useDatabase(start);
    rowTests(database);
    oddTests(database);
    transactionTests(database);
    concurrencyTests(database);
  });
}

function isStale(presented: number, highest: number): (error: unknown) => boolean {
  return (error) => error instanceof StaleTokenError && error.presented === presented && error.highest === highest;
}

function rowTests(database: Database): void {
  test("an equal token is accepted again, a lower one is refused and changes nothing, a higher one is remembered", async () => {
    const { documents, pool } = database;
    const id = await newDocument(pool);
    const row = await documents.update({ token: 9 }, id, { body: "nine" });
    assert.deepEqual(row, { id, body: "nine", edits: 0, fence: "9" });
    await documents.update({ token: 9 }, id, { body: "nine again" });
    // As strings "10" is below "9".
    await documents.update({ token: 10 }, id, { body: "ten", edits: 3 });
    await assert.rejects(documents.update({ token: 9, resource: "doc" }, id, { body: "late", edits: 4 }), isStale(9, 10));
    assert.deepEqual(await storedDocument(pool, id), { body: "ten", edits: 3, fence: "10" });
  });

  test("the greatest token is exact", async () => {
    const { documents, pool } = database;
    const id = await newDocument(pool, tokenMax - 1);
    await documents.update({ token: tokenMax }, id, { body: "greatest" });
    await assert.rejects(documents.update({ token: tokenMax - 1 }, id, { body: "late" }), isStale(tokenMax - 1, tokenMax));
    assert.deepEqual(await storedDocument(pool, id), { body: "greatest", edits: 0, fence: String(tokenMax) });
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
      await assert.rejects(call, (error) => error instanceof ResourceMissingError && error.resource === `documents/${id}`);
    }
    await documents.upsert({ token: 5 }, id, { body: "made" });
    await documents.upsert({ token: 6 }, id, { body: "changed" });
    await assert.rejects(documents.upsert({ token: 5 }, id, { body: "late" }), isStale(5, 6));
    assert.deepEqual(await storedDocument(pool, id), { body: "changed", edits: 0, fence: "6" });
  });

  test("a read closes the row to older tokens", async () => {
    const { documents, pool } = database;
    const id = await newDocument(pool);
    assert.deepEqual(await documents.read({ token: 7 }, id), { id, body: "first", edits: 0, fence: "7" });
    await assert.rejects(documents.update({ token: 6 }, id, { body: "late" }), isStale(6, 7));
    await assert.rejects(documents.read({ token: 6 }, id), isStale(6, 7));
    assert.deepEqual(await documents.read({ token: 7 }, id), { id, body: "first", edits: 0, fence: "7" });
  });
}

function oddTests(database: Database): void {
  test("names and keys are data, however they look", async () => {
    const { pool } = database;
    const table = 'odd"; DROP TABLE documents; --';
    const quoted = `"${table.replaceAll('"', '""')}"`;
    await pool.query(`CREATE TABLE ${quoted} ("k""; --" text PRIMARY KEY, "$1" text, "fence'" bigint NOT NULL DEFAULT 0)`);
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
    await assert.rejects(fences.transaction({ resource: key, token: 7 }, () => 1), isStale(7, 8));
    assert.equal((await pool.query("SELECT count(*)::int AS n FROM documents")).rows.length, 1);
  });

  test("a fence column that can't hold a token, or compares otherwise than numbers, is an error and no hole", async () => {
    const { pool } = database;
    await pool.query("CREATE TABLE small (id integer PRIMARY KEY, body text, fence integer DEFAULT 0); INSERT INTO small VALUES (1, 'first')");
    const small = postgresGuard(pool, { table: "small", key: "id", fence: "fence" });
    await small.update({ token: 2 ** 31 - 1 }, 1, { body: "fits" });
    await assert.rejects(small.update({ token: 2 ** 31 }, 1, { body: "too great" }), { code: "22003" });
    await pool.query("CREATE TABLE texts (id integer PRIMARY KEY, body text, fence text DEFAULT '0'); INSERT INTO texts VALUES (1, 'first')");
    const texts = postgresGuard(pool, { table: "texts", key: "id", fence: "fence" });
    await assert.rejects(texts.update({ token: 5 }, 1, { body: "x" }), { code: "42804" });
    for (const [table, body] of [["small", "fits"], ["texts", "first"]]) {
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
      await assert.rejects(guard.transaction({ token: 5 }, 1, () => 1), { code: "incompatible" }, table);
    }
  });
}

function transactionTests(database: Database): void {
  const saveIn = (resource: string, token: number, id: number, body: string, fail = false): Promise<void> =>
    database.fences.transaction({ resource, token }, async (tx) => {
      await tx.query("UPDATE documents SET body = $2 WHERE id = $1", [id, body]);
      await tx.query("INSERT INTO revisions VALUES ($1, $2)", [id, body]);
      if (fail) throw new Error("changed my mind");
    });
  const revisionsOf = async (id: number): Promise<unknown> =>
    (await database.pool.query("SELECT body FROM revisions WHERE document = $1 ORDER BY body", [id])).rows.map((row) => row["body"]);

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

  test("a fence row outlives the data", async () => {
    const id = await newDocument(database.pool);
    const name = `doc:${id}`;
    await database.fences.transaction({ resource: name, token: 9 }, (tx) => tx.query("DELETE FROM documents WHERE id = $1", [id]));
    const late = database.fences.transaction({ resource: name, token: 8 }, (tx) =>
      tx.query("INSERT INTO documents (id, body) VALUES ($1, 'back again')", [id]),
    );
    await assert.rejects(late, isStale(8, 9));
    assert.equal(await storedDocument(database.pool, id), undefined);
  });

  test("of several fences one stale token stops all", async () => {
    const { fences, pool } = database;
    await fences.transaction({ resource: "several:b", token: 20 }, () => 1);
    const both = [{ resource: "several:b", token: 12 }, { resource: "several:a", token: 12 }];
    await assert.rejects(fences.transaction(both, () => assert.fail("the body ran")), isStale(12, 20));
    const { rows } = await pool.query("SELECT resource, token::text FROM holdfast_fences WHERE resource LIKE 'several:%'");
    assert.deepEqual(rows, [{ resource: "several:b", token: "20" }]);
  });

  test("a row's own fence guards a transaction as well, and single updates share it", async () => {
    const { documents, pool } = database;
    const id = await newDocument(pool);
    await documents.transaction({ token: 9 }, id, async (tx) => {
      await tx.query("UPDATE documents SET edits = edits + 1 WHERE id = $1", [id]);
      await tx.query("INSERT INTO revisions VALUES ($1, 'nine')", [id]);
    });
    await assert.rejects(documents.update({ token: 8 }, id, { body: "late" }), isStale(8, 9));
    await documents.update({ token: 10 }, id, { body: "ten" });
    await assert.rejects(documents.transaction({ token: 9 }, id, () => assert.fail("the body ran")), isStale(9, 10));
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

function concurrencyTests(database: Database): void {
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
          assert.ok(error instanceof StaleTokenError && error.presented === token && error.highest > token, String(error));
          refused += 1;
        }
      }),
    );
    const { rows } = await pool.query("SELECT fence::text, body FROM history WHERE id = $1 ORDER BY at", [id]);
    const tokens = rows.map((row) => Number(row["fence"]));
    assert.deepEqual(tokens, [...tokens].sort((a, b) => a - b), "accepted tokens never fall");
    const byBody = (a: object, b: object): number => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1);
    assert.deepEqual([...rows].sort(byBody), accepted.sort(byBody), "history and answers agree");
    assert.equal(accepted.length + refused, 100);
    assert.ok(accepted.length >= 5 && refused >= 1, `the tokens were mixed: ${accepted.length} accepted, ${refused} refused`);
    const last = rows.at(-1);
    assert.deepEqual(await storedDocument(pool, id), { body: last?.["body"], edits: 0, fence: "20" });
  });

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
            await tx.query("UPDATE documents SET edits = $2, fence = $3 WHERE id = $1", [id, (rows[0]?.edits ?? 0) + 1, lock.token]);
          });
          accepted += 1;
        } catch (error) {
          assert.ok(error instanceof StaleTokenError, String(error));
        }
      }),
    );
    const { rows } = await pool.query("SELECT fence::text AS fence FROM history WHERE id = $1 ORDER BY at", [id]);
    const tokens = rows.map((row) => Number(row["fence"]));
    assert.deepEqual(tokens, [...tokens].sort((a, b) => a - b));
    assert.deepEqual(await storedDocument(pool, id), { body: "first", edits: accepted, fence: "10" });
    assert.ok(accepted >= 4 && accepted <= 40);
  });
}
