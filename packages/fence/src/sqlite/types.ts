/** The part of a better-sqlite3 Database, or of a DatabaseSync of node:sqlite, that the guards use. Neither is a dependency. */
export interface SqliteDatabase {
  prepare(sql: string): SqliteStatement;
  exec(sql: string): unknown;
  /** better-sqlite3. */
  readonly inTransaction?: boolean;
  /** node:sqlite, from Node 22.16 on. */
  readonly isTransaction?: boolean;
}

export interface SqliteStatement {
  all(...values: never[]): unknown[];
}

export type SqliteRow = Record<string, unknown>;
