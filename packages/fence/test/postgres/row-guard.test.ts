import assert from "node:assert/strict";
import { test } from "node:test";

import {
  IncompatibleResourceError,
  ResourceMissingError,
  StaleTokenError,
  UnknownOutcomeError,
} from "../../src/index.js";
import { postgresGuard } from "../../src/postgres.js";
import type { PostgresGuard, PostgresGuardOptions, PostgresKey, PostgresPool } from "../../src/postgres.js";
import { FakePool, databaseError } from "./fake-pool.js";
import type { Answer } from "./fake-pool.js";

const options: PostgresGuardOptions = { table: "documents", key: "id", fence: "fence" };
const lock = { resource: "doc:42", token: 33 };

function guardOver(answer: Answer): { pool: FakePool; documents: PostgresGuard } {
  const pool = new FakePool(answer);
  return { pool, documents: postgresGuard(pool, options) };
}

// A 39: nothing lives in a database session, so that any pooler may stand between.
test("an update compares and writes in one statement", async () => {
  const row = { id: 42, body: "new", fence: "33" };
  const { pool, documents } = guardOver(() => [row]);
  assert.deepEqual(await documents.update(lock, 42, { body: "new", 'odd"name': null }), row);
  assert.deepEqual(pool.statements, [
    {
      text:
        'UPDATE "documents" SET "body" = $3, "odd""name" = $4, "fence" = $1::bigint ' +
        'WHERE "id" = $2 AND COALESCE("fence", 0) <= $1::bigint RETURNING *',
      values: [33, 42, "new", null],
    },
  ]);
  assert.deepEqual(pool.releases, [false]);
  assert.equal(pool.listeners.size, 0);
});

test("an upsert makes the row or updates it under the same rule", async () => {
  const { pool, documents } = guardOver(() => [{ id: 42 }]);
  await documents.upsert(lock, 42, { body: "new" });
  assert.equal(
    pool.texts[0],
    'INSERT INTO "documents" AS guarded ("id", "fence", "body") VALUES ($2, $1::bigint, $3) ' +
      'ON CONFLICT ("id") DO UPDATE SET "body" = EXCLUDED."body", "fence" = $1::bigint ' +
      'WHERE COALESCE(guarded."fence", 0) <= $1::bigint RETURNING *',
  );
});

test("a read raises the fence, unless it stands at the token already", async () => {
  const held = guardOver(() => [{ id: 42, body: "x" }]);
  assert.deepEqual(await held.documents.read(lock, 42), { id: 42, body: "x" });
  assert.deepEqual(held.pool.texts, ['SELECT * FROM "documents" WHERE "id" = $2 AND "fence" = $1::bigint']);

  const raised = guardOver((_, at) => (at === 1 ? [] : [{ id: 42, body: "x" }]));
  assert.deepEqual(await raised.documents.read(lock, 42), { id: 42, body: "x" });
  assert.equal(
    raised.pool.texts[1],
    'UPDATE "documents" SET "fence" = $1::bigint WHERE "id" = $2 AND COALESCE("fence", 0) <= $1::bigint RETURNING *',
  );
});

test("no row changed: the row tells a stale token from a missing resource", async () => {
  const stale = guardOver((_, at) => (at === 1 ? [] : [{ highest: "9007199254740991", newer: true }]));
  await assert.rejects(stale.documents.update(lock, 42, { body: "late" }), (error) => {
    assert.ok(error instanceof StaleTokenError);
    assert.deepEqual([error.resource, error.presented, error.highest], ["doc:42", 33, 2 ** 53 - 1]);
    return true;
  });
  const missing = guardOver(() => []);
  await assert.rejects(missing.documents.update({ token: 33 }, "a/b", { body: "x" }), (error) => {
    assert.ok(error instanceof ResourceMissingError);
    assert.deepEqual([error.code, error.resource], ["resource_missing", "documents/a/b"]);
    return true;
  });
  assert.equal(missing.pool.statements.length, 2, "a missing row is no race to be run again");
});

// A 47: one driver hands int8 over as text, another rounds it.
test("the database compares: an int8 that arrives as a string is never compared here", async () => {
  const { documents } = guardOver((_, at) => (at === 1 ? [] : [{ highest: "9", newer: true }]));
  await assert.rejects(documents.update({ token: 10, resource: "x" }, 1, { body: "x" }), {
    code: "stale_token",
    highest: 9,
  });
});

test("a row that became writable meanwhile is tried again, a limited number of times", async () => {
  const raced = guardOver((_, at) => (at === 1 ? [] : at === 2 ? [{ highest: "30", newer: false }] : [{ id: 42 }]));
  assert.deepEqual(await raced.documents.update(lock, 42, { body: "x" }), { id: 42 });

  const stuck = guardOver(({ text }) => (text.startsWith("UPDATE") ? [] : [{ highest: "30", newer: false }]));
  await assert.rejects(stuck.documents.update(lock, 42, { body: "x" }), { code: "incompatible" });
  assert.equal(stuck.pool.statements.length, 20);
  assert.equal(stuck.pool.releases.length, 10);
});

test("serialization failures are tried again, a limited number of times; other errors come as they are", async () => {
  const twice = guardOver((_, at) => (at < 3 ? databaseError(at === 1 ? "40001" : "40P01") : [{ id: 42 }]));
  await twice.documents.update(lock, 42, { body: "x" });
  assert.deepEqual(twice.pool.releases, [false, false, false]);

  const always = guardOver(() => databaseError("40001"));
  await assert.rejects(always.documents.update(lock, 42, { body: "x" }), { code: "40001" });
  assert.equal(always.pool.statements.length, 10);

  const other = guardOver(() => databaseError("23514"));
  await assert.rejects(other.documents.update(lock, 42, { body: "x" }), { code: "23514" });
  assert.deepEqual([other.pool.statements.length, other.pool.releases], [1, [false]]);
});

test("a connection lost under a write leaves the outcome open, and doesn't go back to the pool", async () => {
  const cause = new Error("Connection terminated unexpectedly");
  const { pool, documents } = guardOver(() => cause);
  await assert.rejects(documents.update(lock, 42, { body: "x" }), (error) => {
    assert.ok(error instanceof UnknownOutcomeError);
    assert.deepEqual([error.code, error.retryable, error.cause], ["unknown_outcome", true, cause]);
    return true;
  });
  assert.deepEqual([pool.statements.length, pool.releases], [1, [true]]);
});

test("a pool that gives no connection says so itself: nothing was sent", async () => {
  const refused = new Error("connect ECONNREFUSED");
  const pool: PostgresPool = { connect: () => Promise.reject(refused) };
  await assert.rejects(postgresGuard(pool, options).update(lock, 42, { body: "x" }), refused);
});

test("a fence that is no token, and a key that isn't unique, are told", async () => {
  for (const highest of ["9007199254740992", "-1", "1.5", null]) {
    const { documents } = guardOver((_, at) => (at === 1 ? [] : [{ highest, newer: true }]));
    await assert.rejects(documents.update(lock, 42, { body: "x" }), IncompatibleResourceError, String(highest));
  }
  const twins = guardOver(() => [{ id: 42 }, { id: 42 }]);
  await assert.rejects(twins.documents.update(lock, 42, { body: "x" }), IncompatibleResourceError);
});

test("odd arguments are refused by name before anything is sent", async () => {
  const { pool, documents } = guardOver(() => [{ id: 42 }]);
  const calls: readonly (readonly [string, () => Promise<unknown>])[] = [
    ["lock.token", () => documents.update({ token: 0 }, 42, { body: "x" })],
    ["id", () => documents.update(lock, undefined as unknown as PostgresKey, { body: "x" })],
    ["id", () => documents.update(lock, 1.5, { body: "x" })],
    ["id", () => documents.update(lock, "\ud800", { body: "x" })],
    ["id", () => documents.read(lock, {} as PostgresKey)],
    ["values", () => documents.update(lock, 42, {})],
    ["values", () => documents.update(lock, 42, ["x"])],
    ["values", () => documents.update(lock, 42, null as unknown as object)],
    ["values.body", () => documents.update(lock, 42, { body: undefined })],
    ["values.id", () => documents.update(lock, 42, { id: 43 })],
    ["values.fence", () => documents.update(lock, 42, { body: "x", fence: 0 })],
    ["values.", () => documents.update(lock, 42, { "": "x" })],
    ["lock.resource", () => documents.transaction({ token: 5 }, () => 1)],
    ["body", () => documents.transaction(lock, 42, undefined as unknown as () => number)],
    ["options.isolation", () => documents.transaction(lock, 42, () => 1, { isolation: "READ" as "serializable" })],
    ["options.bodyRunsMax", () => documents.transaction(lock, 42, () => 1, { bodyRunsMax: 0 })],
    ["options.idleTimeoutMs", () => documents.transaction(lock, 42, () => 1, { idleTimeoutMs: 2 ** 31 })],
    ["options.retries", () => documents.transaction(lock, () => 1, { retries: 3 } as object)],
  ];
  for (const [argument, call] of calls) await assert.rejects(call(), { code: "invalid_argument", argument });
  assert.equal(pool.statements.length, 0);

  const makes: readonly (readonly [string, object])[] = [
    ["options.table", { ...options, table: "" }],
    ["options.key", { ...options, key: "a".repeat(64) }],
    ["options.fence", { ...options, fence: "id" }],
    ["options.schema", { ...options, schema: 3 }],
    ["options.keyFor", { ...options, keyFor: "id" }],
    ["options.column", { ...options, column: "x" }],
  ];
  for (const [argument, odd] of makes) {
    assert.throws(() => postgresGuard(pool, odd as PostgresGuardOptions), { code: "invalid_argument", argument });
  }
  assert.throws(() => postgresGuard({} as PostgresPool, options), { argument: "pool" });
});
