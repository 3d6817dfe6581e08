import { InvalidArgumentError } from "../errors.js";
import { described } from "../fence.js";
import type { Fence } from "../fence.js";
import { checkOptionNames } from "../options.js";
import { PostgresSession, attemptsMax, pauseBefore } from "./session.js";
import { isSerializationFailure } from "./sql-state.js";
import type { PostgresPool, PostgresResult, Row } from "./types.js";

/** What the body of a guarded transaction works with. It ends with the body. */
export interface PostgresTransaction {
  /** Runs inside the transaction. Without `values` the text may hold several statements, but never COMMIT or ROLLBACK. */
  query<R extends object = Row>(text: string, values?: readonly unknown[]): Promise<PostgresResult<R>>;
  /** The fences under which the transaction runs. */
  readonly fences: readonly Fence[];
}

export interface TransactionOptions {
  /** Default: what the server or the role sets, normally "read committed". */
  readonly isolation?: "read committed" | "repeatable read" | "serializable";
  /**
   * How often the body may run in all, 1 to 10, when the database gives up a transaction (40001, 40P01); default 1: its effects
   * outside the database would be doubled. Before the body has begun such failures are always tried again.
   */
  readonly bodyRunsMax?: number;
  /**
   * The database ends the transaction when it hears nothing for so long, 0 (never) to 2^31-1 ms, default 10 000. The transaction
   * keeps its fence row locked: without this limit a stopped holder would keep its successors waiting for as long as it sleeps.
   */
  readonly idleTimeoutMs?: number;
}

/** Takes the fence rows. Resolves with the database's id of the transaction; throws when a token is stale. */
type TakeFences = (session: PostgresSession) => Promise<string>;

/** Everything but the body, complete and checked. */
interface TransactionPlan {
  readonly resource: string;
  readonly fences: readonly Fence[];
  readonly take: TakeFences;
  readonly begin: string;
  readonly bodyRunsMax: number;
}

export type TransactionBody<T> = (tx: PostgresTransaction) => T | PromiseLike<T>;

/** Turns the caller's options into the plan's part of them. */
export function checkedTransactionOptions(options: TransactionOptions): Pick<TransactionPlan, "begin" | "bodyRunsMax"> {
  checkOptionNames(options, "options", ["isolation", "bodyRunsMax", "idleTimeoutMs"]);
  const { isolation, bodyRunsMax = 1, idleTimeoutMs = 10_000 } = options;
  if (isolation !== undefined && !["read committed", "repeatable read", "serializable"].includes(isolation)) {
    throw new InvalidArgumentError("options.isolation", `is no isolation level: ${described(isolation)}`);
  }
  checkWhole(bodyRunsMax, "options.bodyRunsMax", 1, attemptsMax);
  checkWhole(idleTimeoutMs, "options.idleTimeoutMs", 0, 2 ** 31 - 1);
  const level = isolation === undefined ? "" : ` ISOLATION LEVEL ${isolation.toUpperCase()}`;
  return { begin: `BEGIN${level}; SET LOCAL idle_in_transaction_session_timeout = ${idleTimeoutMs}`, bodyRunsMax };
}

/**
 * BEGIN, fences, body, COMMIT on one connection. From the moment a fence row is taken it is locked: no newer token can be accepted
 * before this transaction has ended, so a token that was good at the start is good at the COMMIT, lock lost meanwhile or not.
 */
export async function runTransaction<T>(
  pool: PostgresPool,
  plan: TransactionPlan,
  body: TransactionBody<T>,
): Promise<T> {
  let bodyRuns = 0;
  const countedBody: TransactionBody<T> = (tx) => {
    bodyRuns += 1;
    return body(tx);
  };
  for (let attempt = 1; ; attempt += 1) {
    const session = await PostgresSession.open(pool);
    try {
      return await runOnce(session, plan, countedBody);
    } catch (error) {
      await rollBack(session);
      if (!isSerializationFailure(error) || bodyRuns >= plan.bodyRunsMax || attempt >= attemptsMax) throw error;
    } finally {
      session.close();
    }
    await pauseBefore(attempt);
  }
}

async function runOnce<T>(session: PostgresSession, plan: TransactionPlan, body: TransactionBody<T>): Promise<T> {
  await session.query(plan.begin);
  const transactionId = await plan.take(session);
  const result = await runBody(session, plan.fences, body);
  await checkSameTransaction(session, transactionId);
  await session.commit(plan.resource, transactionId, "COMMIT");
  return result;
}

async function runBody<T>(session: PostgresSession, fences: readonly Fence[], body: TransactionBody<T>): Promise<T> {
  let isOver = false;
  const tx: PostgresTransaction = {
    async query<R extends object = Row>(text: string, values?: readonly unknown[]): Promise<PostgresResult<R>> {
      if (isOver)
        throw new InvalidArgumentError("tx", "was used after its transaction had ended: await every query in the body");
      const result = await session.query(text, values === undefined ? undefined : [...values]);
      return result as PostgresResult<R>;
    },
    fences,
  };
  try {
    return await body(tx);
  } finally {
    isOver = true;
  }
}

/**
 * What the body wrote is fenced only if it ran in the transaction that took the fence. After a COMMIT or ROLLBACK of its own it
 * would not have; after a failed statement that it swallowed, the database answers here with 25P02 instead of a silent rollback.
 */
async function checkSameTransaction(session: PostgresSession, transactionId: string): Promise<void> {
  const { rows } = await session.query("SELECT txid_current_if_assigned()::text AS id");
  if (rows[0]?.["id"] !== transactionId) {
    throw new InvalidArgumentError(
      "body",
      "ended the guarded transaction itself (COMMIT or ROLLBACK): what followed was not fenced",
    );
  }
}

async function rollBack(session: PostgresSession): Promise<void> {
  if (session.isBroken) return;
  try {
    await session.query("ROLLBACK");
  } catch {
    // The caller gets the first error; closing the connection rolls back as well.
    session.markBroken();
  }
}

function checkWhole(value: unknown, argument: string, min: number, max: number): void {
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < min || value > max) {
    throw new InvalidArgumentError(argument, `must be a whole number from ${min} to ${max}, not ${described(value)}`);
  }
}
