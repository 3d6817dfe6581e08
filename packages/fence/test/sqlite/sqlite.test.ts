import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";

import { StaleTokenError } from "../../src/index.js";
import { sqliteFenceTableSql, sqliteFences, sqliteGuard } from "../../src/sqlite.js";
import type { SqliteDatabase, SqliteGuardOptions, SqliteKey } from "../../src/sqlite.js";

const lock = { resource: "doc:42", token: 33 };
const options = { table: "documents", key: "id", fence: "fence" };

/** Writes down what it is asked, and answers with one row. */
function fakeDatabase(): SqliteDatabase & { readonly asked: unknown[] } {
  const asked: unknown[] = [];
  return {
    asked,
    inTransaction: true,
    exec: (sql) => asked.push(sql),
    prepare: (sql) => ({
      all: (...values) => {
        asked.push([sql, ...values]);
        return [{ id: 1 }];
      },
    }),
  };
}

test("whole numbers are bound as bigints, the fence last in the comparison", () => {
  const database = fakeDatabase();
  sqliteGuard(database, options).update(lock, 42, { body: "x", size: 3, ratio: 0.5 });
  assert.deepEqual(database.asked, [
    [
      'UPDATE "documents" SET "body" = ?, "size" = ?, "ratio" = ?, "fence" = ? WHERE "id" = ? ' +
        `AND typeof(COALESCE("fence", 0)) = 'integer' AND COALESCE("fence", 0) <= ? RETURNING *`,
      ...["x", 3n, 0.5, 33n, 42n, 33n],
    ],
  ]);
});

test("a transaction begins with the write lock and the fences, in one order", () => {
  const database = fakeDatabase();
  sqliteFences(database, { table: "f" }).transaction([{ resource: "b", token: 7 }, lock], () =>
    database.asked.push("body"),
  );
  const take =
    'INSERT INTO "f" AS guarded (resource, token) VALUES (?, ?) ON CONFLICT (resource) ' +
    "DO UPDATE SET token = excluded.token WHERE guarded.token <= excluded.token RETURNING resource";
  assert.deepEqual(database.asked, ["BEGIN IMMEDIATE", [take, "b", 7n], [take, "doc:42", 33n], "body", "COMMIT"]);
});

test("the table of fences takes no odd name for SQL", () => {
  assert.match(sqliteFenceTableSql(), /^CREATE TABLE IF NOT EXISTS "holdfast_fences" \(/);
  assert.match(sqliteFenceTableSql({ table: 'f"; DROP' }), /EXISTS "f""; DROP" \(/);
});

test("odd arguments are refused by name before anything is sent", () => {
  const database = fakeDatabase();
  const documents = sqliteGuard(database, options);
  const fences = sqliteFences(database);
  const rows: readonly (readonly [string, () => unknown])[] = [
    ["lock.token", () => documents.update({ token: 0 }, 42, { body: "x" })],
    ["id", () => documents.update(lock, 1.5, { body: "x" })],
    ["id", () => documents.read(lock, undefined as unknown as SqliteKey)],
    ["id", () => documents.take(lock, "\ud800")],
    ["values", () => documents.update(lock, 42, {})],
    ["values", () => documents.update(lock, 42, ["x"])],
    ["values.body", () => documents.update(lock, 42, { body: undefined })],
    ["values.body", () => documents.update(lock, 42, { body: true })],
    ["values.body", () => documents.update(lock, 42, { body: new Date() })],
    ["values.ID", () => documents.update(lock, 42, { ID: 43 })],
    ["values.FENCE", () => documents.upsert(lock, 42, { FENCE: 0 })],
    ["body", () => documents.transaction(lock, 42, undefined as unknown as () => void)],
    ["body", () => fences.transaction(lock, "x" as unknown as () => void)],
    ["lock.resource", () => fences.transaction({ token: 1 }, () => 1)],
    ["locks", () => fences.take([])],
    ["options.table", () => sqliteFences(database, { table: "" })],
    ["options.schema", () => sqliteFences(database, { schema: "x" } as object)],
    ["options.fence", () => sqliteGuard(database, { ...options, fence: "ID" })],
    ["options.key", () => sqliteGuard(database, { ...options, key: "a\0" })],
    ["options.keyFor", () => sqliteGuard(database, { ...options, keyFor: String } as SqliteGuardOptions)],
    ["options.metrics", () => sqliteGuard(database, { ...options, metrics: {} as never })],
    ["database", () => sqliteGuard({} as SqliteDatabase, options)],
    ["database", () => sqliteFences(null as unknown as SqliteDatabase)],
  ];
  for (const [argument, call] of rows) assert.throws(call, { code: "invalid_argument", argument }, argument);
  assert.deepEqual(database.asked, []);
});

const hasNodeSqlite = Number.parseInt(process.versions.node, 10) >= 22;

test("node:sqlite serves as it is", { skip: hasNodeSqlite ? false : "it comes with Node 22" }, () => {
  const { DatabaseSync } = createRequire(import.meta.url)("node:sqlite") as {
    readonly DatabaseSync: new (path: string) => SqliteDatabase;
  };
  const database = new DatabaseSync(":memory:");
  database.exec(`CREATE TABLE documents (id INTEGER PRIMARY KEY, body TEXT, fence INTEGER); ${sqliteFenceTableSql()}`);
  const documents = sqliteGuard(database, options);
  const fences = sqliteFences(database);
  for (const token of [1, 2 ** 31, 2 ** 51 + 1, Number.MAX_SAFE_INTEGER]) {
    documents.upsert({ token }, 42, { body: `under ${token}` });
    assert.deepEqual({ ...documents.read({ token }, 42) }, { id: 42, body: `under ${token}`, fence: token });
    fences.transaction({ resource: "doc:42", token }, () => database.exec("DELETE FROM documents WHERE id = 1"));
    if (token === 1) continue;
    assert.throws(() => documents.update({ token: token - 1 }, 42, { body: "late" }), StaleTokenError);
    assert.throws(() => fences.transaction({ resource: "doc:42", token: token - 1 }, () => 1), StaleTokenError);
  }
});
