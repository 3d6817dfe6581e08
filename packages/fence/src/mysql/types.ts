/** The part of a pool of `mysql2/promise` that the guards use. It is no dependency: any driver with this shape will do. */
export interface MysqlPool {
  getConnection(): Promise<MysqlConnection>;
}

export interface MysqlConnection extends MysqlQueryable {
  query(sql: string, values?: never[]): Promise<readonly [unknown, ...unknown[]]>;
  release(): void;
  /** Closes it instead of giving it back. */
  destroy(): void;
}

/** What `take` needs of a connection with an open transaction: prepared statements, whose values never become text of SQL. */
export interface MysqlQueryable {
  execute(sql: string, values?: never[]): Promise<readonly [unknown, ...unknown[]]>;
}

export type MysqlRow = Record<string, unknown>;

/** The rows of a SELECT. */
export async function rowsOf(connection: MysqlQueryable, sql: string, values: readonly unknown[]): Promise<MysqlRow[]> {
  const [rows] = await connection.execute(sql, [...values] as never[]);
  return Array.isArray(rows) ? (rows as MysqlRow[]) : [];
}
