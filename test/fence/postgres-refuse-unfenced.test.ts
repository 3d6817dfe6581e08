/** The triggers that the package ships as SQL: a table refuses what shows no fence, and takes what the guards and written SQL show. */
import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { debianPostgres, skipWithoutDebianPostgres } from "../harness/postgres.js";
import type { TestPool } from "../harness/postgres.js";
import { isStale, newDocument, storedDocument, useDatabase } from "./database.js";
import type { Database } from "./database.js";
import { migration } from "./stores/postgres.js";

/** The answer of a trigger: nothing was changed, whatever the statement was. */
const refused = { code: "23514", constraint: "holdfast_fence" };

describe("a PostgreSQL that refuses unfenced writes", { skip: skipWithoutDebianPostgres(), timeout: 120_000 }, () => {
  const database = useDatabase(debianPostgres);
  /** One connection for all: what a transaction has shown must end with it. */
  let one: TestPool;

  before(async () => {
    one = database.postgres.pool({ max: 1 });
    // Twice: a migration that was interrupted is run again.
    for (let run = 1; run <= 2; run += 1) {
      await one.query(migration("001-fence-table"));
      await one.query(migration("002-refuse-unfenced"));
      await one.query("SELECT holdfast_guard_rows('documents', 'fence', plain_inserts => true)");
    }
    await one.query(`
      CREATE TABLE accounts (id integer PRIMARY KEY, balance integer);
      CREATE TABLE bookings (amount integer);
      SELECT holdfast_guard_table('accounts', 'acct:', 'id'), holdfast_guard_table('bookings', 'bookings');`);
  });

  rowTests(database, () => one);
  tableTests(database, () => one);

  test("holdfast_unguard takes it away, and a table of another schema with an odd name can be guarded", async () => {
    await one.query('CREATE SCHEMA "s.x"; CREATE TABLE "s.x"."T\'s" (id integer, "Fen""ce" bigint)');
    await one.query(`SELECT holdfast_guard_rows('"s.x"."T''s"', 'Fen"ce')`);
    await assert.rejects(one.query('INSERT INTO "s.x"."T\'s" VALUES (1, 0)'), refused);
    await one.query('INSERT INTO "s.x"."T\'s" VALUES (1, 4)');
    await assert.rejects(one.query('UPDATE "s.x"."T\'s" SET id = 2'), refused);
    await one.query('UPDATE "s.x"."T\'s" SET id = 2, "Fen""ce" = 5');
    await one.query(`SELECT holdfast_unguard('"s.x"."T''s"')`);
    await one.query('UPDATE "s.x"."T\'s" SET id = 3');
  });
});

function rowTests(database: Database, one: () => TestPool): void {
  test("rows: plain writes are refused, guarded ones are not, and the next plain one on the same connection is", async () => {
    const { documents, pool } = database;
    const id = await newDocument(pool);
    const plain = ["UPDATE documents SET body = 'x'", "DELETE FROM documents", "TRUNCATE documents"];
    for (const text of plain) await assert.rejects(one().query(text), refused, text);
    await documents.update({ token: 5 }, id, { body: "five" });
    await documents.upsert({ token: 6 }, id, { body: "six" });
    await documents.read({ token: 7 }, id);
    for (const text of plain) await assert.rejects(one().query(text), refused, text);
    await assert.rejects(documents.upsert({ token: 6 }, id, { body: "late" }), isStale(6, 7));
    assert.deepEqual(await storedDocument(pool, id), { body: "six", edits: 0, fence: "7" });
  });

  test("rows: a transaction writes the rows whose fences it has taken, each under its own token, and no other", async () => {
    const { documents, pool } = database;
    const [a, b, other] = [await newDocument(pool), await newDocument(pool), await newDocument(pool, 3)];
    const edit = "UPDATE documents SET edits = edits + 1 WHERE id = ANY($1)";
    await documents.transaction({ token: 9 }, a, async (tx) => {
      await documents.take(tx, { token: 8 }, b);
      await tx.query(edit, [[a, b]]);
      await tx.query("DELETE FROM documents WHERE id = $1", [b]);
    });
    const astray = documents.transaction({ token: 10 }, a, (tx) => tx.query(edit, [[a, other]]));
    await assert.rejects(astray, refused);
    assert.deepEqual(await storedDocument(pool, a), { body: "first", edits: 1, fence: "9" });
    assert.equal(await storedDocument(pool, b), undefined);
    assert.deepEqual(await storedDocument(pool, other), { body: "first", edits: 0, fence: "3" });
  });

  test("rows: written SQL that names the fence is compared under the row's lock, even without a comparison of its own", async () => {
    const { pool } = database;
    const id = await newDocument(pool, 5);
    const naive = "UPDATE documents SET body = $2, fence = $3 WHERE id = $1";
    await pool.query(naive, [id, "five again", 5]);
    await pool.query(naive, [id, "six", "6"]);
    for (const token of [5, 0, null]) await assert.rejects(pool.query(naive, [id, "late", token]), refused);
    // The old one waits behind the newer, and is compared with what that left.
    const newer = await pool.connect();
    await newer.query("BEGIN");
    await newer.query(naive, [id, "nine", 9]);
    const old = assert.rejects(pool.query(naive, [id, "late", 8]), refused);
    await newer.query("COMMIT");
    newer.release();
    await old;
    assert.deepEqual(await storedDocument(pool, id), { body: "nine", edits: 0, fence: "9" });
  });

  test("rows: a fence that was rolled back to a savepoint has not been shown", async () => {
    const { documents, pool } = database;
    const id = await newDocument(pool, 5);
    const client = await pool.connect();
    await client.query("BEGIN; SAVEPOINT s");
    await documents.take(client, { token: 6 }, id);
    await client.query("ROLLBACK TO s");
    await assert.rejects(client.query("UPDATE documents SET body = 'x' WHERE id = $1", [id]), refused);
    await client.query("ROLLBACK");
    client.release();
    assert.deepEqual(await storedDocument(pool, id), { body: "first", edits: 0, fence: "5" });
  });
}

function tableTests(database: Database, one: () => TestPool): void {
  const balances = async (): Promise<unknown> =>
    (await database.pool.query("SELECT id, balance FROM accounts ORDER BY id")).rows;

  test("table of fences: a row or a table is written only in a transaction that has taken its resource", async () => {
    const { fences, pool } = database;
    const open = "INSERT INTO accounts VALUES ($1, 100) ON CONFLICT DO NOTHING";
    await assert.rejects(pool.query(open, [1]), refused);
    const both = [1, 2].map((id) => ({ resource: `acct:${id}`, token: 4 }));
    await fences.transaction(both, async (tx) => {
      for (const id of [1, 2]) await tx.query(open, [id]);
      await tx.query("UPDATE accounts SET balance = balance - 50 WHERE id = 1");
    });
    const first = { resource: "acct:1", token: 5 };
    for (const text of [
      "UPDATE accounts SET balance = 0",
      "DELETE FROM accounts WHERE id = 2",
      "UPDATE accounts SET id = 3 WHERE id = 1",
      "INSERT INTO bookings VALUES (1)",
      "UPDATE bookings SET amount = 0",
      "DELETE FROM bookings",
      "TRUNCATE bookings",
      "TRUNCATE accounts",
    ]) {
      await assert.rejects(
        fences.transaction(first, (tx) => tx.query(text)),
        refused,
        text,
      );
      await assert.rejects(one().query(text), refused, text);
    }
    await fences.transaction(first, (tx) => tx.query("UPDATE accounts SET balance = 7 WHERE id = 1"));
    await fences.transaction({ resource: "bookings", token: 1 }, (tx) =>
      tx.query("INSERT INTO bookings VALUES (1); UPDATE bookings SET amount = 2; TRUNCATE bookings"),
    );
    assert.deepEqual(await balances(), [
      { id: 1, balance: 7 },
      { id: 2, balance: 100 },
    ]);
  });

  test("table of fences: a stale token has taken nothing, also where nobody looks, and no fence can be set back", async () => {
    const { fences, pool } = database;
    await fences.transaction({ resource: "acct:9", token: 9 }, (tx) => tx.query("INSERT INTO accounts VALUES (9, 9)"));
    const client = await pool.connect();
    await client.query("BEGIN");
    const take =
      "INSERT INTO holdfast_fences AS f VALUES ('acct:9', 8) " +
      "ON CONFLICT (resource) DO UPDATE SET token = EXCLUDED.token WHERE f.token <= EXCLUDED.token";
    assert.equal((await client.query(take)).rowCount, 0);
    await assert.rejects(client.query("UPDATE accounts SET balance = 8 WHERE id = 9"), refused);
    await client.query("ROLLBACK");
    client.release();
    await assert.rejects(pool.query("UPDATE holdfast_fences SET token = 8 WHERE resource = 'acct:9'"), refused);
    const { rows } = await pool.query("SELECT token::text FROM holdfast_fences WHERE resource = 'acct:9'");
    assert.deepEqual(rows, [{ token: "9" }]);
  });
}
