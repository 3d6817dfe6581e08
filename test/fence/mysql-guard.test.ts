/** What is MySQL's own: implied commits, deadlocks, columns, comparisons, isolation. The common promises are in mysql-store.test.ts. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { StaleTokenError, UnknownOutcomeError } from "@holdfast/fence";
import { mysqlFenceTableSql, mysqlFences, mysqlGuard } from "@holdfast/fence/mysql";
import type { MysqlFences, MysqlGuard } from "@holdfast/fence/mysql";
import { until } from "../harness/until.js";
import { mysqlPool, skipWithoutMariadb, startMariadb } from "./mariadb-server.js";
import type { TestMariadb, TestMysqlPool } from "./mariadb-server.js";

interface Parts {
  mariadb: TestMariadb;
  pool: TestMysqlPool;
  documents: MysqlGuard;
  fences: MysqlFences;
}

describe("what is MySQL's own", { skip: skipWithoutMariadb(), timeout: 180_000 }, () => {
  const parts = {} as Parts;
  before(async () => {
    parts.mariadb = await startMariadb();
    parts.pool = mysqlPool(parts.mariadb.url);
    await run(parts.pool, mysqlFenceTableSql());
    await run(parts.pool, "CREATE TABLE documents (id INT PRIMARY KEY, body TEXT, fence BIGINT UNSIGNED)");
    parts.documents = mysqlGuard(parts.pool, { table: "documents", key: "id", fence: "fence" });
    parts.fences = mysqlFences(parts.pool);
  });
  after(async () => {
    await parts.pool?.end();
    await parts.mariadb?.stop();
  });
  rowTests(parts);
  columnTests(parts);
  nameTests(parts);
  bodyTests(parts);
  raceTests(parts);
  lostTests(parts);
});

async function run(pool: TestMysqlPool, sql: string): Promise<unknown[]> {
  return (await pool.query(sql))[0] as unknown[];
}

function rowTests(parts: Parts): void {
  test("update, upsert and read give the row; a missing one is told apart from a stale token", async () => {
    const { documents } = parts;
    for (const call of [
      () => documents.update({ token: 5 }, 1, { body: "x" }),
      () => documents.read({ token: 5 }, 1),
      () => documents.transaction({ token: 5 }, 1, () => assert.fail("the body ran")),
    ]) {
      await assert.rejects(call, { code: "resource_missing", resource: "documents/1" });
    }
    assert.deepEqual(
      { ...(await documents.upsert({ token: 5 }, 1, { body: "made" })) },
      { id: 1, body: "made", fence: 5 },
    );
    // Nothing changes, and it is no refusal: the count of changed rows would be 0.
    assert.deepEqual(
      { ...(await documents.update({ token: 5 }, 1, { body: "made" })) },
      { id: 1, body: "made", fence: 5 },
    );
    assert.deepEqual({ ...(await documents.update({ token: 6 }, 1, { body: null })) }, { id: 1, body: null, fence: 6 });
    assert.deepEqual({ ...(await documents.read({ token: 7 }, 1)) }, { id: 1, body: null, fence: 7 });
    await assert.rejects(documents.update({ token: 6 }, 1, { body: "late" }), StaleTokenError);
  });

  test("a fence is taken in a transaction of one's own, at every isolation level", async () => {
    const { documents, fences, pool } = parts;
    await documents.upsert({ token: 1 }, 2, { body: "x" });
    for (const [at, level] of ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"].entries()) {
      const connection = await pool.getConnection();
      await connection.query(`SET TRANSACTION ISOLATION LEVEL ${level}`);
      await connection.query("START TRANSACTION WITH CONSISTENT SNAPSHOT");
      const token = 10 * (at + 1);
      // Others have been there since this transaction's snapshot.
      await documents.update({ token: token + 1 }, 2, { body: "newer" });
      await fences.transaction({ resource: "own", token: token + 1 }, () => 1);
      await assert.rejects(documents.take(connection, { token }, 2), StaleTokenError, level);
      await assert.rejects(fences.take(connection, { resource: "own", token }), StaleTokenError, level);
      await fences.take(connection, [{ resource: "own", token: token + 2 }]);
      await connection.query("ROLLBACK");
      connection.release();
    }
    const rows = await run(pool, "SELECT CAST(token AS CHAR) AS token FROM holdfast_fences WHERE resource = 'own'");
    assert.deepEqual(rows, [{ token: "31" }]);
  });
}

function columnTests(parts: Parts): void {
  test("a fence column that can't hold the token is an error and no hole, strict or not", async () => {
    const { mariadb, pool } = parts;
    await run(pool, "CREATE TABLE small (id INT PRIMARY KEY, body TEXT, fence INT DEFAULT 0)");
    await run(pool, "CREATE TABLE floats (id INT PRIMARY KEY, body TEXT, fence FLOAT DEFAULT 0)");
    await run(pool, "CREATE TABLE texts (id INT PRIMARY KEY, body TEXT, fence TEXT)");
    for (const table of ["small", "floats"]) await run(pool, `INSERT INTO ${table} (id, body) VALUES (1, 'first')`);
    await run(pool, "INSERT INTO texts VALUES (1, 'first', 'nine'), (2, 'first', '9')");
    for (const mode of ["STRICT_ALL_TABLES", ""]) {
      const moded = mysqlPool(mariadb.url, { connectionLimit: 1 });
      await moded.query(`SET SESSION sql_mode = '${mode}'`);
      for (const table of ["small", "floats"]) {
        const guard = mysqlGuard(moded, { table, key: "id", fence: "fence" });
        await assert.rejects(guard.update({ token: 2 ** 53 - 1 }, 1, { body: "x" }), isRefused, `${table} ${mode}`);
        await assert.rejects(guard.upsert({ token: 2 ** 53 - 1 }, 2, { body: "x" }), isRefused, `${table} ${mode}`);
      }
      const texts = mysqlGuard(moded, { table: "texts", key: "id", fence: "fence" });
      await assert.rejects(texts.update({ token: 10 }, 1, { body: "x" }), isRefused, mode);
      await moded.end();
    }
    for (const table of ["small", "floats"]) {
      assert.deepEqual(await run(pool, `SELECT * FROM ${table}`), [{ id: 1, body: "first", fence: 0 }]);
    }
    // Numbers as text are compared as numbers.
    const texts = mysqlGuard(pool, { table: "texts", key: "id", fence: "fence" });
    await texts.update({ token: 10 }, 2, { body: "ten" });
    await assert.rejects(texts.update({ token: 9 }, 2, { body: "late" }), StaleTokenError);
  });

  test("a key that isn't unique is told, and nothing is changed", async () => {
    const { pool } = parts;
    await run(pool, "CREATE TABLE twins (id INT, body TEXT, fence BIGINT UNSIGNED DEFAULT 0)");
    await run(pool, "INSERT INTO twins (id, body) VALUES (1, 'a'), (1, 'b')");
    const twins = mysqlGuard(pool, { table: "twins", key: "id", fence: "fence" });
    await assert.rejects(twins.update({ token: 5 }, 1, { body: "x" }), { code: "incompatible" });
    assert.deepEqual(await run(pool, "SELECT body, fence FROM twins ORDER BY body"), [
      { body: "a", fence: 0 },
      { body: "b", fence: 0 },
    ]);
  });
}

function isRefused(error: unknown): boolean {
  const { code, errno } = error as { code?: unknown; errno?: unknown };
  // Out of range, or a value cut short: strict servers say so themselves.
  return code === "incompatible" || errno === 1264 || errno === 1366 || errno === 1292;
}

function nameTests(parts: Parts): void {
  test("names that a collation takes for one are two resources", async () => {
    const { fences } = parts;
    const names = ["n", "N", "n ", "ń", "n\u0301"];
    for (const [at, resource] of names.entries()) await fences.transaction({ resource, token: 10 - at }, () => 1);
    await assert.rejects(
      fences.transaction({ resource: "n".repeat(1_025), token: 1 }, () => 1),
      { code: "invalid_argument", argument: "lock.resource" },
    );
    await fences.transaction({ resource: "n".repeat(1_024), token: 1 }, () => 1);
  });

  test("a number isn't compared with a text that begins like it", async () => {
    const { pool } = parts;
    await run(pool, "CREATE TABLE by_text (id VARCHAR(40) PRIMARY KEY, body TEXT, fence BIGINT UNSIGNED DEFAULT 0)");
    await run(pool, "INSERT INTO by_text (id, body) VALUES ('42', 'its own'), ('42 or so', 'another')");
    const guard = mysqlGuard(pool, { table: "by_text", key: "id", fence: "fence" });
    await guard.update({ token: 5 }, 42, { body: "changed" });
    assert.deepEqual(await run(pool, "SELECT body FROM by_text ORDER BY id"), [
      { body: "changed" },
      { body: "another" },
    ]);
  });

  test("names and values are data, whatever the sql_mode", async () => {
    const { mariadb, pool } = parts;
    const table = "odd`; DROP TABLE documents; --";
    const quoted = `\`${table.replaceAll("`", "``")}\``;
    await run(
      pool,
      `CREATE TABLE ${quoted} (\`k\`\`'"\` VARCHAR(90) PRIMARY KEY, \`$1\` TEXT, \`fence'\` BIGINT UNSIGNED)`,
    );
    for (const mode of ["ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", ""]) {
      const moded = mysqlPool(mariadb.url, { connectionLimit: 1 });
      await moded.query(`SET SESSION sql_mode = '${mode}'`);
      const odd = mysqlGuard(moded, { table, key: "k`'\"", fence: "fence'" });
      const key = `\\'; DROP TABLE documents; -- ${mode}`;
      const row = await odd.upsert<{ $1: string }>({ token: 3 }, key, { $1: key });
      assert.equal(row.$1, key);
      await odd.update({ token: 4 }, key, { $1: '\\" OR 1' });
      await assert.rejects(odd.update({ token: 3 }, key, { $1: "late" }), StaleTokenError);
      await moded.end();
    }
    assert.deepEqual(await run(pool, `SELECT DISTINCT $1 AS text FROM ${quoted}`), [{ text: '\\" OR 1' }]);
  });
}

function bodyTests(parts: Parts): void {
  test("an error of the body rolls back, and a body that commits by itself or by DDL is told", async () => {
    const { fences, documents, pool } = parts;
    await documents.upsert({ token: 1 }, 3, { body: "before" });
    const problem = new Error("changed my mind");
    const failing = fences.transaction({ resource: "body", token: 7 }, async (tx) => {
      await tx.execute("UPDATE documents SET body = 'x' WHERE id = ?", [3]);
      throw problem;
    });
    await assert.rejects(failing, problem);
    assert.equal((await documents.read<{ body: string }>({ token: 1 }, 3)).body, "before");
    for (const end of ["COMMIT", "ROLLBACK", "CREATE TABLE implied (id INT)", "DROP TABLE implied"]) {
      const ending = fences.transaction({ resource: "body", token: 2 }, (tx) => tx.query(end));
      await assert.rejects(ending, { code: "invalid_argument", argument: "body" }, end);
    }
    const begun = fences.transaction({ resource: "body", token: 2 }, async (tx) => {
      await tx.query("COMMIT");
      await tx.query("START TRANSACTION");
    });
    await assert.rejects(begun, { argument: "body" });
    await fences.transaction({ resource: "body", token: 2 }, async (tx) => {
      await tx.query("SAVEPOINT s");
      await tx.query("ROLLBACK TO s");
    });
    assert.equal((await pool.getConnection()).release(), undefined);
  });

  test("nothing runs in a transaction that is over, nor after a deadlock that the body swallowed", async () => {
    const { fences, documents, pool } = parts;
    for (const id of [4, 5]) await documents.upsert({ token: 1 }, id, { body: "before" });
    let leaked: { query(sql: string): Promise<unknown> } | null = null;
    await fences.transaction({ resource: "leak", token: 1 }, (tx) => {
      leaked = tx;
    });
    await assert.rejects(async () => leaked?.query("DELETE FROM documents"), { argument: "tx" });

    const other = await pool.getConnection();
    await other.query("START TRANSACTION");
    await other.query("UPDATE documents SET body = 'theirs' WHERE id = 5");
    // Heavier, so that the server gives up the guarded one.
    await other.query("INSERT INTO holdfast_fences SELECT CONCAT('heavy', seq), 1 FROM seq_1_to_200");
    const swallowing = fences.transaction({ resource: "swallowed", token: 1 }, async (tx) => {
      await tx.query("UPDATE documents SET body = 'mine' WHERE id = 4");
      const waits = other.query("UPDATE documents SET body = 'theirs' WHERE id = 4");
      await tx.query("UPDATE documents SET body = 'mine' WHERE id = 5").catch((error: unknown) => {
        assert.equal((error as { errno?: unknown }).errno, 1213);
      });
      await waits;
      await other.query("ROLLBACK");
      await tx.query("UPDATE documents SET body = 'outside of any transaction' WHERE id = 5");
    });
    await assert.rejects(swallowing, { argument: "tx" });
    other.release();
    assert.deepEqual(await run(pool, "SELECT body FROM documents WHERE id IN (4, 5)"), [
      { body: "before" },
      { body: "before" },
    ]);
  });
}

function raceTests(parts: Parts): void {
  test("writers that make one row at once all come through, the highest last", async () => {
    const { documents, pool } = parts;
    const tokens = Array.from({ length: 20 }, (_, at) => 1 + ((at * 7) % 20));
    const outcomes = await Promise.all(
      tokens.map((token) =>
        documents.upsert({ token }, 6, { body: `under ${token}` }).then(
          () => true,
          (error: unknown) => assert.ok(error instanceof StaleTokenError, String(error)),
        ),
      ),
    );
    assert.equal(outcomes.length, 20);
    assert.deepEqual(await run(pool, "SELECT body, fence FROM documents WHERE id = 6"), [
      { body: "under 20", fence: 20 },
    ]);
  });
}

function lostTests(parts: Parts): void {
  test("a connection killed before the COMMIT leaves nothing, and at it an open outcome", async () => {
    const { documents, fences, pool, mariadb } = parts;
    await documents.upsert({ token: 1 }, 7, { body: "before" });
    const killed = fences.transaction({ resource: "lost", token: 9 }, async (tx) => {
      await tx.query("UPDATE documents SET body = 'half' WHERE id = 7");
      const [rows] = await tx.query("SELECT CONNECTION_ID() AS id");
      await pool.query(`KILL ${(rows as { id: number }[])[0]?.id}`);
      await tx.query("UPDATE documents SET body = 'half' WHERE id = 7");
    });
    await assert.rejects(killed, (error) => !(error instanceof UnknownOutcomeError));
    await until("the killed connection's row is free", async () => {
      await documents.update({ token: 2 }, 7, { body: "after" });
      return true;
    });
    assert.deepEqual(await run(pool, "SELECT token FROM holdfast_fences WHERE resource = 'lost'"), []);

    const cutting = mysqlPool(mariadb.url, { connectionLimit: 1 });
    const cut = mysqlFences({
      getConnection: async () => {
        const connection = await cutting.getConnection();
        return {
          execute: (sql, values) => connection.execute(sql, values),
          release: () => connection.release(),
          destroy: () => connection.destroy(),
          query: async (sql, values) => {
            const answer = await connection.query(sql, values);
            // Done, and the answer is lost.
            if (sql === "COMMIT")
              throw Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET", errno: -104 });
            return answer;
          },
        };
      },
    });
    const open = cut.transaction({ resource: "lost", token: 9 }, (tx) =>
      tx.query("UPDATE documents SET body = 'whole' WHERE id = 7"),
    );
    await assert.rejects(
      open,
      (error) => error instanceof UnknownOutcomeError && !error.retryable && error.resource === "lost",
    );
    await cutting.end();
    assert.equal((await documents.read<{ body: string }>({ token: 2 }, 7)).body, "whole");
  });
}
