import { IncompatibleResourceError, InvalidArgumentError, ResourceMissingError } from "../errors.js";
import { fenceOf } from "../fence.js";
import type { Fence, FenceSource } from "../fence.js";
import type { Guarded } from "../guarded.js";
import { StaleReporter } from "../reporting.js";
import { checkedRowKey } from "../row-arguments.js";
import { neverTaken, refusalFrom } from "./register.js";
import { checkedValues, rowStatements } from "./row-statements.js";
import type { PostgresGuardOptions, PostgresKey, RowStatements } from "./row-statements.js";
import { PostgresSession, attemptsMax, checkPool, pauseBefore } from "./session.js";
import { isSerializationFailure } from "./sql-state.js";
import { checkedTransactionOptions, runTransaction } from "./transaction.js";
import type { TransactionBody, TransactionOptions } from "./transaction.js";
import type { PostgresPool, PostgresQueryable, PostgresResult, Row } from "./types.js";

/**
 * Guards rows that bear their own fence. Every method refuses a token below the row's fence with StaleTokenError and a row that
 * isn't there with ResourceMissingError, having changed nothing, and leaves the row's fence at the token. A token equal to the fence
 * is accepted again. All reject with InvalidArgumentError for a mistake in an argument; other errors of the database come as they are.
 */
export interface PostgresGuard {
  /** Writes the columns of `values` in one statement. Resolves with the whole row as it stands then. */
  update<R extends object = Row>(lock: FenceSource, id: PostgresKey, values: object): Promise<R>;
  /** As `update`, but makes the row when it isn't there. It can't know the tokens of a row that was deleted. */
  upsert<R extends object = Row>(lock: FenceSource, id: PostgresKey, values: object): Promise<R>;
  /** Raises the fence and resolves with the row: from now on no older holder can change what was read. */
  read<R extends object = Row>(lock: FenceSource, id: PostgresKey): Promise<R>;
  /**
   * Takes the row's fence, then runs `body`, in one transaction; without `id`, of the row that the lock is named after (`keyFor`).
   * Resolves with the body's result once it is committed.
   * An error of the body rolls back and comes as it is; UnknownOutcomeError when the connection was lost during COMMIT.
   */
  transaction<T>(lock: FenceSource, body: TransactionBody<T>, options?: TransactionOptions): Promise<T>;
  transaction<T>(
    lock: FenceSource,
    id: PostgresKey,
    body: TransactionBody<T>,
    options?: TransactionOptions,
  ): Promise<T>;
  /**
   * Takes the row's fence inside a transaction of your own; make it the first statement, and roll back when it rejects.
   * A serialization failure (40001) comes as it is.
   */
  take(client: PostgresQueryable, lock: FenceSource, id: PostgresKey): Promise<void>;
}

/**
 * @throws InvalidArgumentError naming the option.
 */
export function postgresGuard(pool: PostgresPool, options: PostgresGuardOptions): PostgresGuard {
  checkPool(pool);
  return new RowGuard(pool, options);
}

/** A guarded statement: what it says, and whether a missing row can only be a race. */
interface GuardedStatement {
  readonly text: string;
  readonly parameters: unknown[];
  readonly makesRow: boolean;
}

class RowGuard implements PostgresGuard {
  readonly #pool: PostgresPool;
  readonly #options: PostgresGuardOptions;
  readonly #statements: RowStatements;
  readonly #reporter: StaleReporter;

  constructor(pool: PostgresPool, options: PostgresGuardOptions) {
    this.#pool = pool;
    this.#statements = rowStatements(options);
    this.#options = { ...options };
    this.#reporter = new StaleReporter("postgres", options, options.table);
  }

  async update<R extends object = Row>(lock: FenceSource, id: PostgresKey, values: object): Promise<R> {
    const { columns, parameters } = checkedValues(values, 1);
    return this.#run<R>(lock, id, { text: this.#statements.update(columns), parameters, makesRow: false });
  }

  async upsert<R extends object = Row>(lock: FenceSource, id: PostgresKey, values: object): Promise<R> {
    const { columns, parameters } = checkedValues(values, 0);
    return this.#run<R>(lock, id, { text: this.#statements.upsert(columns), parameters, makesRow: true });
  }

  async read<R extends object = Row>(lock: FenceSource, id: PostgresKey): Promise<R> {
    return this.#run<R>(
      lock,
      id,
      { text: this.#statements.raise, parameters: [], makesRow: false },
      this.#statements.readHeld,
    );
  }

  async transaction<T>(
    lock: FenceSource,
    idOrBody: PostgresKey | TransactionBody<T>,
    bodyOrOptions?: TransactionBody<T> | TransactionOptions,
    lastOptions?: TransactionOptions,
  ): Promise<T> {
    const fence = fenceOf(lock);
    const isWithoutId = typeof idOrBody === "function";
    const id = isWithoutId ? this.#keyFor(fence) : checkedRowKey(idOrBody);
    const body = isWithoutId ? idOrBody : bodyOrOptions;
    const options = isWithoutId ? bodyOrOptions : lastOptions;
    if (typeof body !== "function") throw new InvalidArgumentError("body", "must be a function");
    if (typeof options === "function") throw new InvalidArgumentError("options", "must be an object");
    const guarded = this.#guarded(fence, id);
    const plan = {
      ...checkedTransactionOptions(options ?? {}),
      resource: guarded.resource,
      fences: [fence],
      take: (session: PostgresSession) => this.#take(session, guarded, id),
    };
    return runTransaction(this.#pool, plan, body);
  }

  async take(client: PostgresQueryable, lock: FenceSource, id: PostgresKey): Promise<void> {
    const key = checkedRowKey(id);
    await this.#take(client, this.#guarded(fenceOf(lock), key), key);
  }

  /** Under "read committed" each statement sees what is committed by then, so a race with another writer is run again here. */
  async #take(client: PostgresQueryable, guarded: Guarded, id: PostgresKey): Promise<string> {
    for (let attempt = 1; attempt <= attemptsMax; attempt += 1) {
      const taken = await client.query(this.#statements.take, [guarded.token, id]);
      if (taken.rows.length > 0) return String(this.#onlyRow(taken, guarded)["transaction"]);
      await this.#refuse(client, guarded, id, false);
    }
    throw neverTaken(guarded);
  }

  async #run<R extends object>(
    lock: FenceSource,
    id: PostgresKey,
    statement: GuardedStatement,
    firstTry?: string,
  ): Promise<R> {
    const key = checkedRowKey(id);
    const guarded = this.#guarded(fenceOf(lock), key);
    for (let attempt = 1; ; attempt += 1) {
      const session = await PostgresSession.open(this.#pool);
      try {
        const row = await this.#runOnce(session, guarded, key, statement, firstTry);
        if (row !== null) return row as R;
        if (attempt >= attemptsMax) throw neverTaken(guarded);
      } catch (error) {
        if (!isSerializationFailure(error) || attempt >= attemptsMax) throw error;
      } finally {
        session.close();
      }
      await pauseBefore(attempt);
    }
  }

  /** Null when a race with another writer calls for another attempt. */
  async #runOnce(
    session: PostgresSession,
    guarded: Guarded,
    id: PostgresKey,
    statement: GuardedStatement,
    firstTry: string | undefined,
  ): Promise<Row | null> {
    // A fence that stands at this token already needs no raising, and readers of one generation needn't wait for each other.
    const held = firstTry === undefined ? null : await session.query(firstTry, [guarded.token, id]);
    if (held !== null && held.rows.length > 0) return this.#onlyRow(held, guarded);

    const parameters = [guarded.token, id, ...statement.parameters];
    const changed = await session.commit(guarded.resource, null, statement.text, parameters);
    if (changed.rows.length > 0) return this.#onlyRow(changed, guarded);
    await this.#refuse(session, guarded, id, statement.makesRow);
    return null;
  }

  /** No row was changed: says why, or returns because the row has become writable since. */
  async #refuse(client: PostgresQueryable, guarded: Guarded, id: PostgresKey, makesRow: boolean): Promise<void> {
    const found = await client.query(this.#statements.readFence, [guarded.token, id]);
    if (refusalFrom(found, guarded, this.#reporter) === "not-newer" || makesRow) return;
    const { table, key } = this.#options;
    throw new ResourceMissingError(
      guarded.resource,
      `no row of ${table} has ${key} = ${id} (guarded by ${guarded.resource})`,
    );
  }

  #onlyRow(result: PostgresResult, guarded: Guarded): Row {
    const [row, second] = result.rows;
    if (row === undefined || second !== undefined) {
      const { table, key } = this.#options;
      const problem = `${table}.${key} is not unique: ${result.rows.length} rows share one value, and each would need its own lock`;
      throw new IncompatibleResourceError(guarded.resource, problem);
    }
    return row;
  }

  #guarded(fence: Fence, id: PostgresKey): Guarded {
    return { ...fence, resource: fence.resource ?? `${this.#options.table}/${id}` };
  }

  #keyFor(fence: Fence): PostgresKey {
    if (fence.resource === undefined) {
      throw new InvalidArgumentError(
        "lock.resource",
        "is needed to find the row; or give its key as the second argument",
      );
    }
    return this.#options.keyFor === undefined ? fence.resource : checkedRowKey(this.#options.keyFor(fence.resource));
  }
}
