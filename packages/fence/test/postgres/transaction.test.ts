import assert from "node:assert/strict";
import { test } from "node:test";

import { StaleTokenError, UnknownOutcomeError } from "../../src/index.js";
import { fenceTableSql, postgresFences, postgresGuard } from "../../src/postgres.js";
import type { PostgresTransaction } from "../../src/postgres.js";
import { FakePool, databaseError } from "./fake-pool.js";
import type { Answer, Statement } from "./fake-pool.js";

const lock = { resource: "doc:42", token: 33 };
const begin = "BEGIN; SET LOCAL idle_in_transaction_session_timeout = 10000";
const take =
  'INSERT INTO "holdfast_fences" AS guarded (resource, token) VALUES ($1, $2::bigint) ' +
  "ON CONFLICT (resource) DO UPDATE SET token = EXCLUDED.token WHERE guarded.token <= EXCLUDED.token " +
  "RETURNING txid_current()::text AS transaction";
const sameTransaction = "SELECT txid_current_if_assigned()::text AS id";

/** A database where every token is good, but for what `odd` answers. */
function goodPool(
  odd: (statement: Statement, at: number) => ReturnType<Answer> | undefined = () => undefined,
): FakePool {
  return new FakePool((statement, at) => {
    const answer = odd(statement, at);
    if (answer !== undefined) return answer;
    if (statement.text.includes("txid_current()")) return [{ transaction: "815" }];
    return statement.text === sameTransaction ? [{ id: "815" }] : [];
  });
}

test("the fence comes first, the body runs on the same connection, and its result is the transaction's", async () => {
  const pool = goodPool();
  const result = await postgresFences(pool).transaction(lock, async (tx) => {
    assert.deepEqual(tx.fences, [lock]);
    await tx.query("UPDATE documents SET body = $1", ["x"]);
    await tx.query("NOTIFY saved");
    return "done";
  });
  assert.equal(result, "done");
  assert.deepEqual(pool.texts, [
    begin,
    take,
    "UPDATE documents SET body = $1",
    "NOTIFY saved",
    sameTransaction,
    "COMMIT",
  ]);
  assert.deepEqual(pool.statements[1]?.values, ["doc:42", 33]);
  assert.deepEqual([pool.releases, pool.listeners.size], [[false], 0]);
});

test("a row guard takes the row's own fence; without a key, that of the row the lock is named after", async () => {
  const options = { table: "documents", key: "id", fence: "fence" };
  const text =
    'UPDATE "documents" SET "fence" = $1::bigint WHERE "id" = $2 AND COALESCE("fence", 0) <= $1::bigint ' +
    "RETURNING txid_current()::text AS transaction";
  const takenKey = async (run: (pool: FakePool) => Promise<unknown>): Promise<unknown> => {
    const pool = goodPool();
    await run(pool);
    assert.equal(pool.texts[1], text);
    return pool.statements[1]?.values[1];
  };
  assert.equal(await takenKey((pool) => postgresGuard(pool, options).transaction(lock, 42, () => 1)), 42);
  assert.equal(await takenKey((pool) => postgresGuard(pool, options).transaction(lock, () => 1)), "doc:42");
  const keyFor = (resource: string): number => Number(resource.slice(4));
  assert.equal(await takenKey((pool) => postgresGuard(pool, { ...options, keyFor }).transaction(lock, () => 1)), 42);
});

test("a stale token stops before the body", async () => {
  const pool = goodPool(({ text }) =>
    text.startsWith("INSERT") ? [] : text.startsWith("SELECT token") ? [{ highest: "34", newer: true }] : undefined,
  );
  let bodyRuns = 0;
  const late = postgresFences(pool).transaction(lock, () => (bodyRuns += 1));
  await assert.rejects(
    late,
    (error) => error instanceof StaleTokenError && error.highest === 34 && error.presented === 33,
  );
  assert.equal(bodyRuns, 0);
  assert.equal(pool.texts.at(-1), "ROLLBACK");
  assert.deepEqual(pool.releases, [false]);
});

test("several fences are taken once each, in one order everywhere", async () => {
  const pool = goodPool();
  const locks = [
    { resource: "b", token: 7 },
    { resource: "a", token: 7 },
    { resource: "Z", token: 9 },
    { resource: "b", token: 7 },
  ];
  await postgresFences(pool).transaction(locks, () => 1);
  const taken = pool.statements.filter(({ text }) => text === take).map(({ values }) => values);
  assert.deepEqual(taken, [
    ["Z", 9],
    ["a", 7],
    ["b", 7],
  ]);
});

test("an error of the body rolls back and comes as it is", async () => {
  const pool = goodPool();
  const problem = new Error("no such customer");
  await assert.rejects(
    postgresFences(pool).transaction(lock, () => Promise.reject(problem)),
    problem,
  );
  assert.deepEqual(pool.texts, [begin, take, "ROLLBACK"]);
  assert.deepEqual(pool.releases, [false]);
});

test("failures before the body are tried again; the body runs again only if its caller allows it", async () => {
  const atTake = goodPool(({ text }, at) => (text === take && at < 6 ? databaseError("40001") : undefined));
  let bodyRuns = 0;
  await postgresFences(atTake).transaction(lock, () => (bodyRuns += 1));
  assert.equal(bodyRuns, 1);
  assert.deepEqual(atTake.texts, [
    begin,
    take,
    "ROLLBACK",
    begin,
    take,
    "ROLLBACK",
    begin,
    take,
    sameTransaction,
    "COMMIT",
  ]);

  const failOnce = (): FakePool => {
    let failures = 0;
    return goodPool(({ text }) => (text === "COMMIT" && failures++ === 0 ? databaseError("40001") : undefined));
  };
  bodyRuns = 0;
  await assert.rejects(
    postgresFences(failOnce()).transaction(lock, () => (bodyRuns += 1)),
    { code: "40001" },
  );
  assert.equal(bodyRuns, 1);
  bodyRuns = 0;
  await postgresFences(failOnce()).transaction(lock, () => (bodyRuns += 1), { bodyRunsMax: 2 });
  assert.equal(bodyRuns, 2);
});

test("a connection lost during COMMIT leaves the outcome open; before it, nothing was written", async () => {
  const reset = Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });
  const atCommit = goodPool(({ text }) => (text === "COMMIT" ? reset : undefined));
  await assert.rejects(
    postgresFences(atCommit).transaction(lock, () => 1, { bodyRunsMax: 3 }),
    (error) => {
      assert.ok(error instanceof UnknownOutcomeError);
      assert.deepEqual(
        [error.transactionId, error.retryable, error.resource, error.cause],
        ["815", false, "doc:42", reset],
      );
      return true;
    },
  );
  assert.deepEqual([atCommit.texts.at(-1), atCommit.releases], ["COMMIT", [true]]);

  const inBody = goodPool(({ text }) => (text === "SELECT 1" ? reset : undefined));
  await assert.rejects(
    postgresFences(inBody).transaction(lock, (tx) => tx.query("SELECT 1")),
    reset,
  );
  assert.deepEqual([inBody.texts.at(-1), inBody.releases], ["SELECT 1", [true]]);
});

test("a connection that dies while the body does something else neither ends the process nor goes back to the pool", async () => {
  const pool = goodPool();
  const problem = new Error("gave up");
  const run = postgresFences(pool).transaction(lock, () => {
    assert.equal(pool.listeners.size, 1, "a client on loan has a listener");
    pool.breakConnections();
    throw problem;
  });
  await assert.rejects(run, problem);
  assert.deepEqual([pool.texts, pool.releases, pool.listeners.size], [[begin, take], [true], 0]);
});

test("a body that ended the transaction itself, or swallowed a failed statement, is not committed over", async () => {
  const other = goodPool(({ text }) => (text === sameTransaction ? [{ id: "816" }] : undefined));
  await assert.rejects(
    postgresFences(other).transaction(lock, () => 1),
    { code: "invalid_argument", argument: "body" },
  );
  assert.equal(other.texts.at(-1), "ROLLBACK");
  const none = goodPool(({ text }) => (text === sameTransaction ? [{ id: null }] : undefined));
  await assert.rejects(
    postgresFences(none).transaction(lock, () => 1),
    { argument: "body" },
  );
  const failed = goodPool(({ text }) => (text === sameTransaction ? databaseError("25P02") : undefined));
  await assert.rejects(
    postgresFences(failed).transaction(lock, () => 1),
    { code: "25P02" },
  );
  assert.equal(failed.texts.at(-1), "ROLLBACK");
});

test("nothing runs in a transaction that is over", async () => {
  const pool = goodPool();
  let leaked: PostgresTransaction | undefined;
  await postgresFences(pool).transaction(lock, (tx) => (leaked = tx));
  await assert.rejects(async () => leaked?.query("DELETE FROM documents"), {
    code: "invalid_argument",
    argument: "tx",
  });
  assert.equal(pool.texts.at(-1), "COMMIT");
});

test("isolation and idle timeout are set with BEGIN", async () => {
  const pool = goodPool();
  await postgresFences(pool).transaction(lock, () => 1, { isolation: "serializable", idleTimeoutMs: 0 });
  assert.equal(pool.texts[0], "BEGIN ISOLATION LEVEL SERIALIZABLE; SET LOCAL idle_in_transaction_session_timeout = 0");
});

test("fences can be taken in a transaction of one's own", async () => {
  const pool = goodPool();
  const client = await pool.connect();
  await postgresFences(pool).take(client, lock);
  assert.deepEqual(pool.texts, [take]);
  await postgresGuard(pool, { table: "documents", key: "id", fence: "fence" }).take(client, lock, 42);
  assert.equal(pool.statements.length, 2);
});

test("the table of fences is made by SQL with quoted names", () => {
  assert.equal(
    fenceTableSql({ schema: "app", table: 'f"; DROP TABLE x' }),
    'CREATE TABLE IF NOT EXISTS "app"."f""; DROP TABLE x" (\n' +
      '  resource text COLLATE "C" PRIMARY KEY,\n' +
      "  token bigint NOT NULL CHECK (token >= 1)\n);\n",
  );
  assert.match(fenceTableSql(), /^CREATE TABLE IF NOT EXISTS "holdfast_fences" \(/);
});

test("odd arguments are refused by name before anything is sent", async () => {
  const pool = goodPool();
  const fences = postgresFences(pool);
  const calls: readonly (readonly [string, () => Promise<unknown>])[] = [
    ["lock.resource", () => fences.transaction({ token: 1 }, () => 1)],
    ["locks", () => fences.transaction([], () => 1)],
    ["locks[1].token", () => fences.transaction([lock, { resource: "b", token: -1 }], () => 1)],
    ["locks[1]", () => fences.transaction([lock, { ...lock, token: 34 }], () => 1)],
    ["body", () => fences.transaction(lock, 5 as unknown as () => number)],
    ["options", () => fences.transaction(lock, () => 1, null as unknown as object)],
    ["options.bodyRunsMax", () => fences.transaction(lock, () => 1, { bodyRunsMax: 11 })],
  ];
  for (const [argument, call] of calls) await assert.rejects(call(), { code: "invalid_argument", argument });
  assert.equal(pool.statements.length, 0);
  assert.throws(() => postgresFences(pool, { table: "" }), { argument: "options.table" });
  assert.throws(() => postgresFences(pool, { name: "x" } as object), { argument: "options.name" });
});
