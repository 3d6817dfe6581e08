import assert from "node:assert/strict";
import { test } from "node:test";

import { StaleTokenError, UnknownOutcomeError } from "../../src/index.js";
import { mysqlFenceTableSql, mysqlFences, mysqlGuard } from "../../src/mysql.js";
import type { MysqlGuardOptions, MysqlKey, MysqlPool } from "../../src/mysql.js";

const lock = { resource: "doc:42", token: 33 };
const options = { table: "documents", key: "id", fence: "fence" };

/** Answers a statement with rows, or with an error to throw. */
type Answer = (sql: string) => readonly object[] | Error | undefined;

interface Fake {
  readonly pool: MysqlPool;
  /** The first words of each statement, with its values. */
  readonly asked: unknown[];
  /** "release" or "destroy", one for each connection that was lent. */
  readonly ends: string[];
}

/** A server where every token is good, but for what `odd` answers. */
function fake(odd: Answer = () => undefined): Fake {
  const asked: unknown[] = [];
  const ends: string[] = [];
  const run = async (sql: string, values: readonly unknown[] = []): Promise<[readonly object[]]> => {
    asked.push([sql.split(" ").slice(0, 2).join(" "), ...values]);
    const answer = odd(sql) ?? (sql.includes("AS held") ? [{ highest: "33", held: 1, newer: 0 }] : [{ id: 42 }]);
    if (answer instanceof Error) throw answer;
    return [answer];
  };
  const connection = {
    query: run,
    execute: run,
    release: () => void ends.push("release"),
    destroy: () => void ends.push("destroy"),
  };
  return { pool: { getConnection: async () => connection }, asked, ends };
}

function serverError(errno: number): Error {
  return Object.assign(new Error(`server says ${errno}`), { errno, sqlState: "HY000" });
}

test("fence, savepoint, body, COMMIT, on one connection; tokens and keys are handed over as text", async () => {
  const { pool, asked, ends } = fake();
  await mysqlFences(pool).transaction(lock, (tx) => tx.query("DELETE FROM bookings"));
  assert.deepEqual(asked, [
    ["START TRANSACTION"],
    ["INSERT INTO", "doc:42", "33"],
    ["SELECT CAST(token", "33", "33", "doc:42"],
    ["SAVEPOINT holdfast_fence"],
    ["DELETE FROM"],
    ["RELEASE SAVEPOINT"],
    ["COMMIT"],
  ]);
  assert.deepEqual(ends, ["release"]);
  const row = fake();
  assert.deepEqual(await mysqlGuard(row.pool, options).update({ token: 2 ** 53 - 1 }, 42, { body: "x" }), { id: 42 });
  const token = "9007199254740991";
  assert.deepEqual(row.asked, [
    ["START TRANSACTION"],
    ["UPDATE `documents`", token, "42", token],
    ["SELECT CAST(COALESCE(`fence`,", token, token, "42"],
    ["SAVEPOINT holdfast_fence"],
    ["UPDATE `documents`", "x", "42"],
    ["SELECT *", "42"],
    ["RELEASE SAVEPOINT"],
    ["COMMIT"],
  ]);
});

test("a stale token stops before the body, and a register that isn't one is told", async () => {
  const answers: readonly (readonly [object[], object])[] = [
    [[{ highest: "34", held: 0, newer: 1 }], { code: "stale_token", highest: 34, presented: 33 }],
    [[{ highest: "33", held: 0, newer: 0 }], { code: "incompatible" }],
    [[{ highest: "9.5", held: 0, newer: 0 }], { code: "incompatible" }],
    [[{ highest: "99999999999999999999", held: 0, newer: 1 }], { code: "incompatible" }],
    [
      [
        { highest: "33", held: 1, newer: 0 },
        { highest: "33", held: 1, newer: 0 },
      ],
      { code: "incompatible" },
    ],
    [[], { code: "incompatible" }],
  ];
  for (const [rows, expected] of answers) {
    const { pool, asked, ends } = fake((sql) => (sql.includes("AS held") ? rows : undefined));
    const refused = mysqlFences(pool).transaction(lock, () => assert.fail("the body ran"));
    await assert.rejects(refused, expected);
    assert.deepEqual([asked.at(-1), ends], [["ROLLBACK"], ["release"]]);
  }
});

test("a deadlock before the body is tried again; the body runs again only if its caller allows it", async () => {
  let failures = 0;
  const early = fake((sql) => (sql.startsWith("INSERT") && failures++ < 2 ? serverError(1213) : undefined));
  let bodyRuns = 0;
  await mysqlFences(early.pool).transaction(lock, () => (bodyRuns += 1));
  assert.deepEqual([bodyRuns, early.ends], [1, ["release", "release", "release"]]);

  const failOnce = (): Fake => {
    let count = 0;
    return fake((sql) => (sql === "COMMIT" && count++ === 0 ? serverError(1213) : undefined));
  };
  await assert.rejects(
    mysqlFences(failOnce().pool).transaction(lock, () => 1),
    { errno: 1213 },
  );
  bodyRuns = 0;
  await mysqlFences(failOnce().pool).transaction(lock, () => (bodyRuns += 1), { bodyRunsMax: 2 });
  assert.equal(bodyRuns, 2);
  await mysqlGuard(failOnce().pool, options).update(lock, 42, { body: "x" });
});

test("what follows a COMMIT leaves the outcome open, and its connection is closed", async () => {
  const reset = Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET", errno: -104 });
  for (const cause of [reset, serverError(1053), serverError(1180), serverError(1927), serverError(3169)]) {
    const { pool, ends } = fake((sql) => (sql === "COMMIT" ? cause : undefined));
    const open = mysqlFences(pool).transaction(lock, () => 1);
    await assert.rejects(
      open,
      (error) => error instanceof UnknownOutcomeError && error.cause === cause && !error.retryable,
    );
    assert.deepEqual(ends, ["destroy"]);
    const single = mysqlGuard(pool, options).update(lock, 42, { body: "x" });
    await assert.rejects(single, (error) => error instanceof UnknownOutcomeError && error.retryable);
  }
  const refused = fake((sql) => (sql === "COMMIT" ? serverError(1568) : undefined));
  await assert.rejects(
    mysqlFences(refused.pool).transaction(lock, () => 1),
    { errno: 1568 },
  );
  const gone = fake((sql) => (sql.startsWith("DELETE") || sql === "ROLLBACK" ? reset : undefined));
  await assert.rejects(
    mysqlFences(gone.pool).transaction(lock, (tx) => tx.query("DELETE FROM x")),
    reset,
  );
  assert.deepEqual(gone.ends, ["destroy"]);
});

test("a body that ended the transaction itself is not committed over", async () => {
  const { pool, asked } = fake((sql) => (sql.startsWith("RELEASE") ? serverError(1305) : undefined));
  await assert.rejects(
    mysqlFences(pool).transaction(lock, () => 1),
    { code: "invalid_argument", argument: "body" },
  );
  assert.deepEqual(asked.at(-1), ["ROLLBACK"]);
});

test("refusals are reported by this guard's name", async () => {
  const guards: string[] = [];
  const { pool } = fake((sql) => (sql.includes("AS held") ? [{ highest: "34", held: 0, newer: 1 }] : undefined));
  const documents = mysqlGuard(pool, {
    ...options,
    onStale: (report) => guards.push(`${report.guard} ${report.resourceClass}`),
  });
  await assert.rejects(documents.read(lock, 42), StaleTokenError);
  assert.deepEqual(guards, ["mysql documents"]);
});

test("odd arguments are refused by name before anything is sent", async () => {
  const { pool, asked } = fake();
  const documents = mysqlGuard(pool, options);
  const fences = mysqlFences(pool);
  const calls: readonly (readonly [string, () => Promise<unknown>])[] = [
    ["lock.token", () => documents.update({ token: 0 }, 42, { body: "x" })],
    ["id", () => documents.update(lock, 1.5, { body: "x" })],
    ["id", () => documents.read(lock, undefined as unknown as MysqlKey)],
    ["values", () => documents.update(lock, 42, {})],
    ["values", () => documents.upsert(lock, 42, ["x"])],
    ["values.body", () => documents.update(lock, 42, { body: undefined })],
    ["values.ID", () => documents.update(lock, 42, { ID: 1 })],
    ["values.Fence", () => documents.update(lock, 42, { Fence: 1 })],
    ["body", () => documents.transaction(lock, 42, 5 as unknown as () => void)],
    ["body", () => fences.transaction(lock, 5 as unknown as () => void)],
    ["options.bodyRunsMax", () => fences.transaction(lock, () => 1, { bodyRunsMax: 11 })],
    ["options.isolation", () => documents.transaction(lock, 42, () => 1, { isolation: "x" } as object)],
    ["lock.resource", () => fences.transaction({ token: 1 }, () => 1)],
    ["lock.resource", () => fences.transaction({ resource: "ä".repeat(513), token: 1 }, () => 1)],
    ["locks", () => fences.transaction([], () => 1)],
  ];
  for (const [argument, call] of calls) await assert.rejects(call(), { code: "invalid_argument", argument }, argument);
  assert.deepEqual(asked, []);
  const makes: readonly (readonly [string, () => unknown])[] = [
    ["pool", () => mysqlGuard({} as MysqlPool, options)],
    ["pool", () => mysqlFences(null as unknown as MysqlPool)],
    ["options.table", () => mysqlGuard(pool, { ...options, table: "a".repeat(65) })],
    ["options.schema", () => mysqlGuard(pool, { ...options, schema: "" })],
    ["options.fence", () => mysqlGuard(pool, { ...options, fence: "ID" })],
    ["options.keyFor", () => mysqlGuard(pool, { ...options, keyFor: String } as MysqlGuardOptions)],
    ["options.onStale", () => mysqlFences(pool, { onStale: 1 as never })],
  ];
  for (const [argument, make] of makes) assert.throws(make, { code: "invalid_argument", argument }, argument);
  assert.match(mysqlFenceTableSql({ schema: "app", table: "f`x" }), /^CREATE TABLE IF NOT EXISTS `app`\.`f``x` \(/);
});
