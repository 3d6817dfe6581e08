/** Races between transactions, scripted: each step waits until the database shows that the one before has come where it belongs. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { StaleTokenError, UnknownOutcomeError } from "@holdfast/fence";
import { postgresFences, postgresGuard } from "@holdfast/fence/postgres";
import type { PostgresPool } from "@holdfast/fence/postgres";

import { debianPostgres, skipWithoutDebianPostgres } from "../harness/postgres.js";
import type { TestClient, TestPool } from "../harness/postgres.js";
import { until } from "../harness/until.js";
import { newDocument, storedDocument, useDatabase } from "./database.js";
import type { Database } from "./database.js";

const columns = { table: "documents", key: "id", fence: "fence" };

describe("races on a PostgreSQL server", { skip: skipWithoutDebianPostgres(), timeout: 120_000 }, () => {
  const database = useDatabase(debianPostgres);
  waitingTests(database);
  holdingTests(database);
  isolationTests(database);
  bodyTests(database);
  killedSaveTests(database);
  lostAnswerTests(database);
});

/** Resolves when `count` statements of this database wait for a lock. */
async function untilWaiting(pool: TestPool, count = 1): Promise<void> {
  const text =
    "SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
  await until(`${count} statements wait for a lock`, async () => (await pool.query(text)).rows[0]?.["n"] === count);
}

/** An open transaction that has written document `id` with `token`. */
async function openWriter(pool: TestPool, id: number, token: number): Promise<TestClient> {
  const client = await pool.connect();
  await client.query("BEGIN");
  await client.query("UPDATE documents SET body = 'newer', fence = $2 WHERE id = $1", [id, token]);
  return client;
}

/** A pool whose connections write down the SQLSTATEs of their errors. */
function watched(pool: TestPool, states: string[]): PostgresPool {
  return wrapped(pool, async (client, text, values) => {
    try {
      return await client.query(text, values);
    } catch (error) {
      states.push(String((error as { code?: unknown }).code));
      throw error;
    }
  });
}

function wrapped(
  pool: TestPool,
  query: (client: TestClient, text: string, values?: unknown[]) => ReturnType<TestClient["query"]>,
): PostgresPool {
  return {
    connect: async () => {
      const client = await pool.connect();
      return {
        query: (text, values) => query(client, text, values),
        release: (destroy) => client.release(destroy),
        on: (event, listener) => client.on(event, listener),
        removeListener: (event, listener) => client.removeListener(event, listener),
      };
    },
  };
}

function waitingTests(database: Database): void {
  test("an old write that waits behind a newer transaction is refused when that commits, and done when it rolls back", async () => {
    const { documents, pool } = database;
    for (const [end, isRefused] of [
      ["COMMIT", true],
      ["ROLLBACK", false],
    ] as const) {
      const id = await newDocument(pool, 5);
      const newer = await openWriter(pool, id, 12);
      const old = documents.update({ token: 10 }, id, { body: "old" }).catch((error: unknown) => error);
      await untilWaiting(pool);
      await newer.query(end);
      newer.release();
      const answer = await old;
      assert.equal(answer instanceof StaleTokenError && answer.highest === 12, isRefused, `${end}: ${String(answer)}`);
      const stored = isRefused ? { body: "newer", edits: 0, fence: "12" } : { body: "old", edits: 0, fence: "10" };
      assert.deepEqual(await storedDocument(pool, id), stored);
    }
  });

  test("a transaction holds its fence: a newer one waits, and the token that was good at the start is good at the COMMIT", async () => {
    const { fences, pool } = database;
    const order: string[] = [];
    let release = (): void => {};
    const isHeld = new Promise<void>((resolve) => {
      release = resolve;
    });
    const old = fences.transaction({ resource: "held", token: 10 }, async () => {
      await isHeld;
      order.push("old");
    });
    await until("the old transaction holds its fence", async () => {
      const text =
        "SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'";
      return (await pool.query(text)).rows[0]?.["n"] === 1;
    });
    const newer = fences.transaction({ resource: "held", token: 11 }, () => order.push("newer"));
    await untilWaiting(pool);
    release();
    await Promise.all([old, newer]);
    assert.deepEqual(order, ["old", "newer"]);
    await assert.rejects(
      fences.transaction({ resource: "held", token: 10 }, () => 1),
      { highest: 11 },
    );
  });
}

function holdingTests(database: Database): void {
  test("transactions over the same resources in any order don't deadlock", async () => {
    const states: string[] = [];
    const fences = postgresFences(watched(database.pool, states));
    const both = [
      { resource: "order:a", token: 3 },
      { resource: "order:b", token: 3 },
    ];
    const runs = Array.from({ length: 40 }, (_, at) =>
      fences.transaction(at % 2 === 0 ? both : [...both].reverse(), () => sleep(1)),
    );
    await Promise.all(runs);
    assert.deepEqual(states, []);
  });

  test("a holder that stops in mid-transaction is cut off, and its successor goes on", async () => {
    const { fences, pool } = database;
    const id = await newDocument(pool);
    let newer: Promise<unknown> = Promise.resolve();
    let wokeAtMs = 0;
    const startedAtMs = performance.now();
    const stopped = fences.transaction(
      { resource: "stopped", token: 10 },
      async (tx) => {
        await tx.query("UPDATE documents SET body = 'half' WHERE id = $1", [id]);
        newer = fences.transaction({ resource: "stopped", token: 11 }, (tx) =>
          tx.query("UPDATE documents SET body = 'newer' WHERE id = $1", [id]),
        );
        await untilWaiting(pool);
        await newer;
        wokeAtMs = performance.now();
        await tx.query("UPDATE documents SET body = 'late' WHERE id = $1", [id]);
      },
      { idleTimeoutMs: 300 },
    );
    await assert.rejects(
      stopped,
      (error) => !(error instanceof StaleTokenError) && !(error instanceof UnknownOutcomeError),
    );
    assert.ok(wokeAtMs - startedAtMs >= 300, "the successor waited until the database had cut the holder off");
    assert.deepEqual(await storedDocument(pool, id), { body: "newer", edits: 0, fence: null });
  });
}

function isolationTests(database: Database): void {
  for (const isolation of ["repeatable read", "serializable"] as const) {
    test(`under "${isolation}" a serialization failure is tried again, and the fence decides`, async () => {
      const { pool } = database;
      const states: string[] = [];
      const strict = watched(database.postgres.pool({ isolation }), states);
      const documents = postgresGuard(strict, columns);
      for (const [token, isRefused] of [
        [10, true],
        [13, false],
      ] as const) {
        const id = await newDocument(pool, 5);
        const newer = await openWriter(pool, id, 12);
        const update = documents.update({ token }, id, { body: "mine" }).catch((error: unknown) => error);
        await untilWaiting(pool);
        await newer.query("COMMIT");
        newer.release();
        const answer = await update;
        assert.equal(answer instanceof StaleTokenError && answer.highest === 12, isRefused, String(answer));
        const stored = isRefused ? { body: "newer", edits: 0, fence: "12" } : { body: "mine", edits: 0, fence: "13" };
        assert.deepEqual(await storedDocument(pool, id), stored);
      }
      assert.deepEqual(states, ["40001", "40001"], "the failures were real");
    });

    test(`under "${isolation}" a transaction that fails at its fence starts again without having run its body`, async () => {
      const { pool } = database;
      const states: string[] = [];
      const name = `strict:${isolation}`;
      const fences = postgresFences(watched(pool, states));
      const newer = await pool.connect();
      await newer.query("BEGIN");
      await database.fences.take(newer, { resource: name, token: 12 });
      let bodyRuns = 0;
      const next = fences.transaction({ resource: name, token: 13 }, () => (bodyRuns += 1), { isolation });
      await untilWaiting(pool);
      await newer.query("COMMIT");
      newer.release();
      await next;
      assert.deepEqual([states, bodyRuns], [["40001"], 1]);
    });
  }
}

function bodyTests(database: Database): void {
  test("20 writers under repeatable read: none fails with a serialization error", async () => {
    const { pool } = database;
    const states: string[] = [];
    const documents = postgresGuard(
      watched(database.postgres.pool({ isolation: "repeatable read", max: 20 }), states),
      columns,
    );
    const id = await newDocument(pool);
    await Promise.all(
      Array.from({ length: 20 }, (_, at) => documents.update({ token: 7 }, id, { body: `writer ${at}` })),
    );
    const { rows } = await pool.query("SELECT count(*)::int AS n FROM history WHERE id = $1", [id]);
    assert.equal(rows[0]?.["n"], 20);
    assert.ok(states.length > 0, "they did collide");
  });

  test("a failure in the body is the caller's, unless the body may run again", async () => {
    const { fences, pool } = database;
    const id = await newDocument(pool);
    const editOnce = async (resource: string, bodyRunsMax: number): Promise<number> => {
      let runs = 0;
      await fences.transaction(
        { resource, token: 1 },
        async (tx) => {
          runs += 1;
          await tx.query("SELECT edits FROM documents WHERE id = $1", [id]);
          // Somebody outside the lock writes what this transaction has read.
          if (runs === 1) await pool.query("UPDATE documents SET edits = edits + 1 WHERE id = $1", [id]);
          await tx.query("UPDATE documents SET edits = edits + 1 WHERE id = $1", [id]);
        },
        { isolation: "repeatable read", bodyRunsMax },
      );
      return runs;
    };
    await assert.rejects(editOnce("body:once", 1), { code: "40001" });
    assert.equal(await editOnce("body:twice", 2), 2);
    assert.deepEqual(await storedDocument(pool, id), { body: "first", edits: 3, fence: null });
  });
}

/** Writes a document and a revision under `token`; `between` gets the connection's process id after the first write. */
async function save(
  pool: PostgresPool,
  id: number,
  token: number,
  between: (pid: unknown) => Promise<unknown>,
): Promise<void> {
  await postgresFences(pool).transaction({ resource: `kill:${id}`, token }, async (tx) => {
    const { rows } = await tx.query<{ pid: unknown }>("SELECT pg_backend_pid() AS pid");
    await tx.query("UPDATE documents SET body = $2 WHERE id = $1", [id, `token ${token}`]);
    await between(rows[0]?.pid);
    await tx.query("INSERT INTO revisions VALUES ($1, $2)", [id, `token ${token}`]);
  });
}

/** Whether the save under `token` stands: both tables and the fence say so, or none does. */
async function isWritten(pool: TestPool, id: number, token: number): Promise<boolean> {
  const text = `SELECT
    (SELECT body FROM documents WHERE id = $1) = $2 AS document,
    EXISTS (SELECT 1 FROM revisions WHERE document = $1 AND body = $2) AS revision,
    COALESCE((SELECT token FROM holdfast_fences WHERE resource = 'kill:' || $1::int), 0) = $3 AS fence`;
  const row = (await pool.query(text, [id, `token ${token}`, token])).rows[0] ?? {};
  assert.ok(row["document"] === row["revision"] && row["revision"] === row["fence"], `torn: ${JSON.stringify(row)}`);
  return row["document"] === true;
}

function kill(pool: TestPool, pid: unknown): Promise<unknown> {
  return pool.query("SELECT pg_terminate_backend($1)", [pid]);
}

function killedSaveTests(database: Database): void {
  test("a connection killed between two tables leaves neither written", async () => {
    const { pool } = database;
    const id = await newDocument(pool);
    await assert.rejects(
      save(pool, id, 7, (pid) => kill(pool, pid)),
      (error) => !(error instanceof UnknownOutcomeError),
    );
    assert.equal(await isWritten(pool, id, 7), false);
    await save(pool, id, 7, async () => undefined);
    assert.equal(await isWritten(pool, id, 7), true);
  });

  test("connections killed at any moment never leave half a save", async () => {
    const { pool } = database;
    const id = await newDocument(pool);
    const savers = database.postgres.pool();
    const endings = { saved: 0, failed: 0, unknown: 0 };
    for (let token = 1; token <= 40; token += 1) {
      let pidOfSave: unknown = null;
      let killed: Promise<unknown> = Promise.resolve();
      const saving = save(savers, id, token, async (pid) => {
        pidOfSave = pid;
        // From right here, through the second write and the COMMIT, to well behind it.
        if (token % 8 === 1) await kill(pool, pid);
        else if (token % 8 !== 0) killed = sleep((token % 8) / 2).then(() => kill(pool, pid));
      });
      const ending = await saving.then(
        () => "saved" as const,
        (error) => (error instanceof UnknownOutcomeError ? "unknown" : "failed"),
      );
      await killed;
      if (token % 8 === 0) await kill(pool, pidOfSave);
      endings[ending] += 1;
      const stands = await isWritten(pool, id, token);
      if (ending !== "unknown") assert.equal(stands, ending === "saved", `token ${token} ${ending}`);
    }
    assert.ok(endings.saved > 0 && endings.failed > 0, `kills before and after the COMMIT: ${JSON.stringify(endings)}`);
  });
}

function lostAnswerTests(database: Database): void {
  test("a connection lost at COMMIT is an unknown outcome: both tables or neither", async () => {
    const { pool } = database;
    const reset = Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });
    for (const isBefore of [true, false]) {
      const id = await newDocument(pool);
      const cut = wrapped(pool, async (client, text, values) => {
        if (text !== "COMMIT") return client.query(text, values);
        if (isBefore) {
          const { rows } = await client.query("SELECT pg_backend_pid() AS pid");
          await kill(pool, rows[0]?.["pid"]);
        }
        const result = await client.query(text, values);
        if (!isBefore) throw reset;
        return result;
      });
      await assert.rejects(
        save(cut, id, 7, async () => undefined),
        (error) => {
          assert.ok(error instanceof UnknownOutcomeError && error.transactionId !== null);
          return !error.retryable;
        },
      );
      assert.equal(await isWritten(pool, id, 7), !isBefore);
    }
  });

  test("an update whose connection dies is an unknown outcome, and may be made again", async () => {
    const { pool } = database;
    const id = await newDocument(pool, 5);
    const newer = await openWriter(pool, id, 6);
    const update = database.documents.update({ token: 7 }, id, { body: "mine" }).catch((error: unknown) => error);
    await untilWaiting(pool);
    const text =
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    await pool.query(text);
    const answer = await update;
    assert.ok(
      answer instanceof UnknownOutcomeError && answer.retryable && answer.transactionId === null,
      String(answer),
    );
    await newer.query("COMMIT");
    newer.release();
    await database.documents.update({ token: 7 }, id, { body: "mine" });
    assert.deepEqual(await storedDocument(pool, id), { body: "mine", edits: 0, fence: "7" });
  });
}
