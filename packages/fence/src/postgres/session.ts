import { setTimeout as sleep } from "node:timers/promises";

import { InvalidArgumentError, UnknownOutcomeError } from "../errors.js";
import { hadNoEffect } from "./sql-state.js";
import type { PostgresClient, PostgresPool, PostgresQueryable, PostgresResult } from "./types.js";

/** Serialization failures and races with other writers are over in one or two attempts; more than these is another problem. */
export const attemptsMax = 10;

/** Waits before another attempt, longer each time, so that writers that met once don't meet again. At most 50 ms. */
export async function pauseBefore(attempt: number): Promise<void> {
  await sleep(Math.random() * Math.min(50, 2 ** attempt));
}

export function checkPool(pool: unknown): void {
  if (typeof pool !== "object" || pool === null || !("connect" in pool) || typeof pool.connect !== "function") {
    throw new InvalidArgumentError("pool", "must have the shape of a pg Pool, with connect()");
  }
}

/** One connection on loan from the pool. It goes back unless its state is in doubt. */
export class PostgresSession implements PostgresQueryable {
  readonly #client: PostgresClient;
  readonly #onError: (error: Error) => void;
  #isBroken = false;

  private constructor(client: PostgresClient) {
    this.#client = client;
    // A client on loan has no listener of the pool's: without one, a connection that dies between two queries ends the process.
    this.#onError = () => this.markBroken();
    client.on?.("error", this.#onError);
  }

  /** A connection that can't be had is the caller's to see as it is: nothing has been sent. */
  static async open(pool: PostgresPool): Promise<PostgresSession> {
    return new PostgresSession(await pool.connect());
  }

  async query(text: string, values?: unknown[]): Promise<PostgresResult> {
    try {
      return values === undefined ? await this.#client.query(text) : await this.#client.query(text, values);
    } catch (error) {
      // A connection that was lost, or whose driver stopped waiting for an answer, serves nobody any more.
      if (!hadNoEffect(error)) this.markBroken();
      throw error;
    }
  }

  /** A statement that commits: what can't be known to have had no effect is told as such. */
  async commit(
    resource: string,
    transactionId: string | null,
    text: string,
    values?: unknown[],
  ): Promise<PostgresResult> {
    try {
      return await this.query(text, values);
    } catch (error) {
      if (hadNoEffect(error)) throw error;
      throw new UnknownOutcomeError(resource, transactionId, error);
    }
  }

  get isBroken(): boolean {
    return this.#isBroken;
  }

  markBroken(): void {
    this.#isBroken = true;
  }

  close(): void {
    this.#client.release(this.#isBroken);
    this.#client.removeListener?.("error", this.#onError);
  }
}
