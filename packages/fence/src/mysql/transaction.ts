import { setTimeout as sleep } from "node:timers/promises";

import { InvalidArgumentError, UnknownOutcomeError } from "../errors.js";
import { described } from "../fence.js";
import type { Fence } from "../fence.js";
import { checkOptionNames } from "../options.js";
import { hadNoEffect, isDeadlock, isDuplicate, mayHaveRolledBack } from "./server-error.js";
import type { MysqlConnection, MysqlPool, MysqlQueryable } from "./types.js";

/** What the body of a guarded transaction works with: the driver's two ways, with its results. It ends with the body. */
export interface MysqlTransaction extends MysqlQueryable {
  /** Values become text of SQL in the driver. `execute` hands them over beside it. */
  query(sql: string, values?: readonly unknown[]): Promise<readonly [unknown, ...unknown[]]>;
  execute(sql: string, values?: readonly unknown[]): Promise<readonly [unknown, ...unknown[]]>;
  /** The fences under which the transaction runs. */
  readonly fences: readonly Fence[];
}

export type MysqlBody<T> = (tx: MysqlTransaction) => T | PromiseLike<T>;

export interface MysqlTransactionOptions {
  /**
   * How often the body may run in all, 1 to 10, when the database gives up a transaction (a deadlock); default 1: its effects outside
   * the database would be doubled. Before the body has begun such failures are always tried again.
   */
  readonly bodyRunsMax?: number;
}

/** Deadlocks and races with other writers are over in a few attempts; more than these is another problem. */
export const attemptsMax = 10;

/** A savepoint ends with its transaction: that is how a COMMIT in the body, or one implied by DDL, is noticed. */
const savepoint = "holdfast_fence";

interface TransactionPlan<T> {
  readonly resource: string;
  readonly fences: readonly Fence[];
  /** Takes the registers; throws when a token is stale. */
  readonly take: (connection: MysqlQueryable) => Promise<void>;
  readonly body: MysqlBody<T>;
  readonly bodyRunsMax: number;
  /** The body is one guarded write, which may be done twice. */
  readonly isSingleWrite?: boolean;
}

export function checkPool(pool: unknown): void {
  if (typeof (pool as Partial<MysqlPool> | null | undefined)?.getConnection !== "function") {
    throw new InvalidArgumentError("pool", "must have the shape of a pool of mysql2/promise, with getConnection()");
  }
}

export function checkedBodyRuns(options: MysqlTransactionOptions): number {
  checkOptionNames(options, "options", ["bodyRunsMax"]);
  const { bodyRunsMax = 1 } = options;
  if (!Number.isSafeInteger(bodyRunsMax) || bodyRunsMax < 1 || bodyRunsMax > attemptsMax) {
    const problem = `must be a whole number from 1 to ${attemptsMax}, not ${described(bodyRunsMax)}`;
    throw new InvalidArgumentError("options.bodyRunsMax", problem);
  }
  return bodyRunsMax;
}

/**
 * START TRANSACTION, fences, body, COMMIT on one connection. A register that was taken stays locked until the end: no newer token can
 * be accepted before, so a token that was good at the start is good at the COMMIT, lock lost meanwhile or not.
 */
export async function runTransaction<T>(pool: MysqlPool, plan: TransactionPlan<T>): Promise<T> {
  let bodyRuns = 0;
  const countedBody: MysqlBody<T> = (tx) => {
    bodyRuns += 1;
    return plan.body(tx);
  };
  for (let attempt = 1; ; attempt += 1) {
    const connection = await pool.getConnection();
    let isUsable = false;
    try {
      const result = await runOnce(connection, { ...plan, body: countedBody });
      isUsable = true;
      return result;
    } catch (error) {
      isUsable = await rolledBack(connection, error);
      const isRace = isDeadlock(error) || (plan.isSingleWrite === true && isDuplicate(error));
      if (!isRace || bodyRuns >= plan.bodyRunsMax || attempt >= attemptsMax) throw error;
    } finally {
      if (isUsable) connection.release();
      else connection.destroy();
    }
    // Longer each time, so that writers that met once don't meet again.
    await sleep(Math.random() * Math.min(100, 2 ** attempt));
  }
}

async function runOnce<T>(connection: MysqlConnection, plan: TransactionPlan<T>): Promise<T> {
  await connection.query("START TRANSACTION");
  await plan.take(connection);
  await connection.query(`SAVEPOINT ${savepoint}`);
  const result = await runBody(connection, plan);
  await checkSameTransaction(connection);
  try {
    await connection.query("COMMIT");
  } catch (error) {
    if (hadNoEffect(error)) throw error;
    throw new UnknownOutcomeError(plan.resource, null, error, plan.isSingleWrite === true);
  }
  return result;
}

async function runBody<T>(connection: MysqlConnection, plan: TransactionPlan<T>): Promise<T> {
  let isOver = false;
  const run = async (
    kind: "query" | "execute",
    sql: string,
    values: readonly unknown[] | undefined,
  ): Promise<readonly [unknown, ...unknown[]]> => {
    if (isOver) {
      throw new InvalidArgumentError("tx", "was used after its transaction had ended: await every query in the body");
    }
    try {
      return await (values === undefined ? connection[kind](sql) : connection[kind](sql, [...values] as never[]));
    } catch (error) {
      // Whoever swallows this error would go on without a transaction.
      if (mayHaveRolledBack(error)) isOver = true;
      throw error;
    }
  };
  const tx: MysqlTransaction = {
    query: (sql, values) => run("query", sql, values),
    execute: (sql, values) => run("execute", sql, values),
    fences: plan.fences,
  };
  try {
    return await plan.body(tx);
  } finally {
    isOver = true;
  }
}

/** What the body wrote is fenced only if it ran in the transaction that took the fence. */
async function checkSameTransaction(connection: MysqlConnection): Promise<void> {
  try {
    await connection.query(`RELEASE SAVEPOINT ${savepoint}`);
  } catch (error) {
    if (!hadNoEffect(error)) throw error;
    throw new InvalidArgumentError(
      "body",
      "ended the transaction itself (COMMIT, ROLLBACK, a swallowed deadlock, or a statement that commits, such as " +
        "CREATE TABLE): what it wrote may not be fenced",
    );
  }
}

/** Resolves with whether the connection may go back to the pool. */
async function rolledBack(connection: MysqlConnection, error: unknown): Promise<boolean> {
  if (error instanceof UnknownOutcomeError) return false;
  try {
    await connection.query("ROLLBACK");
    return true;
  } catch {
    // The error that led here is the one to see. The server rolls back when the connection is closed.
    return false;
  }
}
