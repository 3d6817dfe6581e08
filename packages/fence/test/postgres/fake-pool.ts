import type { PostgresClient, PostgresPool, PostgresResult, Row } from "../../src/postgres.js";

export interface Statement {
  readonly text: string;
  readonly values: readonly unknown[];
}

/** Answers a statement with rows, or with an error to throw. */
export type Answer = (statement: Statement, at: number) => readonly Row[] | Error;

/** A pool that writes down what it was asked. */
export class FakePool implements PostgresPool {
  readonly statements: Statement[] = [];
  /** One entry for each release: true when the connection was destroyed. */
  readonly releases: boolean[] = [];
  readonly listeners = new Set<(error: Error) => void>();
  readonly #answer: Answer;

  constructor(answer: Answer) {
    this.#answer = answer;
  }

  /** The first words of each statement, with their parameters. */
  get texts(): string[] {
    return this.statements.map(({ text }) => text);
  }

  breakConnections(): void {
    for (const listener of this.listeners) listener(new Error("Connection terminated unexpectedly"));
  }

  async connect(): Promise<PostgresClient> {
    return {
      query: async (text: string, values: unknown[] = []): Promise<PostgresResult> => {
        this.statements.push({ text, values });
        const answer = this.#answer({ text, values }, this.statements.length);
        if (answer instanceof Error) throw answer;
        return { rows: [...answer] };
      },
      release: (destroy = false) => void this.releases.push(destroy),
      on: (_event, listener) => this.listeners.add(listener),
      removeListener: (_event, listener) => this.listeners.delete(listener),
    };
  }
}

/** An answer of the database's, with its SQLSTATE. */
export function databaseError(code: string): Error {
  return Object.assign(new Error(`database says ${code}`), { code });
}
