/** What is SQLite's own: types of columns, transactions, bodies, keys. The common promises are in sqlite-store.test.ts. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { StaleTokenError } from "@holdfast/fence";
import { sqliteFences, sqliteGuard } from "@holdfast/fence/sqlite";
import type { SqliteFences, SqliteGuard } from "@holdfast/fence/sqlite";
import { sqliteDrivers, sqliteFile } from "./stores/sqlite.js";
import type { OpenDatabase } from "./stores/sqlite.js";

interface Parts {
  database: OpenDatabase;
  /** Another connection to the same file. */
  other: OpenDatabase;
  notes: SqliteGuard;
  fences: SqliteFences;
}

for (const driver of sqliteDrivers) {
  describe(`what is SQLite's own, by ${driver.name}`, { skip: driver.skip, timeout: 60_000 }, () => {
    const parts = {} as Parts;
    let remove = (): void => {};
    before(() => {
      const file = sqliteFile(driver);
      remove = file.remove;
      parts.database = driver.open(file.path);
      parts.other = driver.open(file.path);
      parts.notes = sqliteGuard(parts.database, { table: "notes", key: "name", fence: "fence" });
      parts.fences = sqliteFences(parts.database);
    });
    after(() => {
      parts.database?.close();
      parts.other?.close();
      remove();
    });
    rowTests(parts);
    typeTests(parts);
    oddTests(parts);
    transactionTests(parts);
    ownTransactionTests(parts);
  });
}

function rowsOf(database: OpenDatabase, sql: string): unknown[] {
  return (database.prepare(sql).all() as object[]).map((row) => ({ ...row }));
}

function rowTests(parts: Parts): void {
  test("update, upsert and read give the row; a missing one is told apart from a stale token", () => {
    const { notes } = parts;
    assert.throws(() => notes.update({ token: 5 }, "r", { body: "x" }), {
      code: "resource_missing",
      resource: "notes/r",
    });
    assert.throws(() => notes.read({ token: 5 }, "r"), { code: "resource_missing" });
    assert.throws(() => notes.transaction({ token: 5 }, "r", () => assert.fail("the body ran")), {
      code: "resource_missing",
    });
    const made = notes.upsert({ token: 5 }, "r", { body: "made" });
    assert.deepEqual({ ...made }, { name: "r", body: "made", lines: "[]", fence: 5 });
    const changed = notes.update({ token: 6 }, "r", { body: null, lines: "[1]" });
    assert.deepEqual({ ...changed }, { name: "r", body: null, lines: "[1]", fence: 6 });
    assert.deepEqual({ ...notes.read({ token: 7 }, "r") }, { name: "r", body: null, lines: "[1]", fence: 7 });
    assert.throws(() => notes.update({ token: 6 }, "r", { body: "late" }), StaleTokenError);
  });
}

function typeTests(parts: Parts): void {
  test("a fence that compares otherwise than numbers is an error and no hole", () => {
    const { database } = parts;
    database.exec(`
      CREATE TABLE texts (id INTEGER PRIMARY KEY, body TEXT, fence TEXT DEFAULT '9');
      CREATE TABLE loose (id INTEGER PRIMARY KEY, body TEXT, fence);
      INSERT INTO texts (id, body) VALUES (1, 'first');
      INSERT INTO loose VALUES (1, 'first', 'nine'), (2, 'first', 9.5), (3, 'first', x'09'), (4, 'first', -3)`);
    for (const [table, id] of [
      ["texts", 1],
      ["loose", 1],
      ["loose", 2],
      ["loose", 3],
    ] as const) {
      const guard = sqliteGuard(database, { table, key: "id", fence: "fence" });
      for (const call of [
        () => guard.update({ token: 10 }, id, { body: "x" }),
        () => guard.upsert({ token: 10 }, id, { body: "x" }),
        () => guard.read({ token: 10 }, id),
      ]) {
        assert.throws(call, { code: "incompatible" }, `${table} ${id}`);
      }
    }
    assert.deepEqual(rowsOf(database, "SELECT DISTINCT body FROM texts UNION SELECT DISTINCT body FROM loose"), [
      { body: "first" },
    ]);
  });

  test("tokens and keys stay whole numbers in columns without a type, and in text ones", () => {
    const { database } = parts;
    database.exec(
      "CREATE TABLE untyped (id PRIMARY KEY, fence); CREATE TABLE by_text (id TEXT PRIMARY KEY, fence INTEGER)",
    );
    database.exec("INSERT INTO by_text (id) VALUES ('42')");
    const untyped = sqliteGuard(database, { table: "untyped", key: "id", fence: "fence" });
    untyped.upsert({ token: 5 }, 42, {});
    untyped.upsert({ token: 6 }, 42, {});
    assert.throws(() => untyped.read({ token: 5 }, 42), StaleTokenError);
    assert.deepEqual(rowsOf(database, "SELECT typeof(id) AS id, typeof(fence) AS fence FROM untyped"), [
      { id: "integer", fence: "integer" },
    ]);
    const byText = sqliteGuard(database, { table: "by_text", key: "id", fence: "fence" });
    assert.deepEqual({ ...byText.read({ token: 5 }, 42) }, { id: "42", fence: 5 });
  });
}

function oddTests(parts: Parts): void {
  test("a trigger that stops the write is told, and so is a key that isn't unique", () => {
    const { database } = parts;
    database.exec(`
      CREATE TABLE frozen (id INTEGER PRIMARY KEY, body TEXT, fence INTEGER DEFAULT 0);
      INSERT INTO frozen VALUES (1, 'first', 0);
      CREATE TRIGGER ignored BEFORE UPDATE ON frozen BEGIN SELECT RAISE(IGNORE); END;
      CREATE TABLE twins (id INTEGER, body TEXT, fence INTEGER DEFAULT 0);
      INSERT INTO twins VALUES (1, 'a', 0), (1, 'b', 0)`);
    for (const table of ["frozen", "twins"]) {
      const guard = sqliteGuard(database, { table, key: "id", fence: "fence" });
      assert.throws(() => guard.update({ token: 5 }, 1, { body: "x" }), { code: "incompatible" }, table);
      assert.throws(() => guard.transaction({ token: 5 }, 1, () => 1), { code: "incompatible" }, table);
    }
  });

  test("names are data, and great keys are exact", () => {
    const { database } = parts;
    const table = 'odd"; DROP TABLE notes; --';
    const quoted = `"${table.replaceAll('"', '""')}"`;
    database.exec(`CREATE TABLE ${quoted} ("k""; --" PRIMARY KEY, "?" TEXT, "fence'" INTEGER)`);
    const odd = sqliteGuard(database, { table, key: 'k"; --', fence: "fence'" });
    for (const id of ["' OR 1 --", 2 ** 53 - 1, 2n ** 52n]) {
      odd.upsert({ token: 3 }, id, { "?": `of ${id}` });
      odd.update({ token: 4 }, id, { "?": `again of ${id}` });
      assert.throws(() => odd.update({ token: 3 }, id, { "?": "late" }), StaleTokenError);
    }
    const stored = rowsOf(database, `SELECT "?" AS text, CAST("k""; --" AS TEXT) AS id FROM ${quoted} ORDER BY 1`);
    const ids = ["' OR 1 --", "9007199254740991", "4503599627370496"];
    assert.deepEqual(
      stored,
      ids.map((id) => ({ text: `again of ${id}`, id })).sort((a, b) => (a.text < b.text ? -1 : 1)),
    );
  });
}

function transactionTests(parts: Parts): void {
  test("an error of the body rolls back the fence too, and an asynchronous body is refused", () => {
    const { fences, notes, database } = parts;
    const lock = { resource: "body", token: 9 };
    const problem = new Error("changed my mind");
    const failing = (): never => {
      database.exec("INSERT INTO notes (name) VALUES ('body')");
      throw problem;
    };
    assert.throws(() => fences.transaction(lock, failing), problem);
    assert.throws(
      () => fences.transaction(lock, async () => database.exec("INSERT INTO notes (name) VALUES ('body')")),
      { argument: "body" },
    );
    assert.deepEqual(rowsOf(database, "SELECT * FROM holdfast_fences WHERE resource = 'body'"), []);
    assert.deepEqual(rowsOf(database, "SELECT * FROM notes WHERE name = 'body'"), []);
    assert.equal(
      fences.transaction({ ...lock, token: 1 }, (taken) => taken[0]?.token),
      1,
    );
    notes.upsert({ token: 3 }, "row", { body: "kept" });
    assert.throws(() => notes.transaction({ token: 4 }, "row", failing), problem);
    const { body, fence } = notes.read<{ body: string; fence: number }>({ token: 3 }, "row");
    assert.deepEqual([body, fence], ["kept", 3]);
  });

  test("a body that ends the transaction itself is told", () => {
    const { fences, database } = parts;
    for (const end of ["COMMIT", "ROLLBACK"]) {
      const ending = (): void => fences.transaction({ resource: "ends", token: 5 }, () => void database.exec(end));
      assert.throws(ending, { code: "invalid_argument", argument: "body" }, end);
    }
    fences.transaction({ resource: "ends", token: 6 }, () => database.exec("SAVEPOINT s; ROLLBACK TO s; RELEASE s"));
  });

  test("no other connection gets between fence and body", () => {
    const { fences, database, other } = parts;
    other.exec("PRAGMA busy_timeout = 0");
    fences.transaction({ resource: "between", token: 5 }, () => {
      const late = sqliteFences(other);
      assert.throws(() => late.transaction({ resource: "between", token: 6 }, () => 1), /locked|busy/i);
      database.exec("INSERT INTO notes (name) VALUES ('between')");
    });
    assert.deepEqual(rowsOf(other, "SELECT token FROM holdfast_fences WHERE resource = 'between'"), [{ token: 5 }]);
  });
}

function ownTransactionTests(parts: Parts): void {
  test("fences are taken in a transaction of one's own, and not without one", () => {
    const { fences, notes, database } = parts;
    const lock = { resource: "own", token: 5 };
    notes.upsert({ token: 1 }, "own", {});
    assert.throws(() => fences.take(lock), { argument: "database" });
    assert.throws(() => notes.take(lock, "own"), { argument: "database" });
    database.exec("BEGIN");
    fences.take([lock, { resource: "own 2", token: 4 }]);
    notes.take(lock, "own");
    database.exec("COMMIT");
    database.exec("BEGIN");
    assert.throws(() => fences.take([{ resource: "own 2", token: 3 }]), StaleTokenError);
    assert.throws(() => notes.take({ token: 4 }, "own"), StaleTokenError);
    database.exec("ROLLBACK");
  });
}
