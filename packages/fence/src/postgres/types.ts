/** The part of a `pg` Pool that the guards use. `pg` is no dependency: any driver with this shape will do. */
export type Row = Record<string, unknown>;

export interface PostgresResult<R extends object = Row> {
  readonly rows: R[];
}

export interface PostgresClient {
  query(text: string, values?: unknown[]): Promise<PostgresResult>;
  /** With true the connection is closed instead of going back to the pool. */
  release(destroy?: boolean): void;
  on?(event: "error", listener: (error: Error) => void): unknown;
  removeListener?(event: "error", listener: (error: Error) => void): unknown;
}

export interface PostgresPool {
  connect(): Promise<PostgresClient>;
}

/** What `take` needs of a client with an open transaction: that of any query builder can be wrapped to it. */
export interface PostgresQueryable {
  query(text: string, values?: unknown[]): Promise<PostgresResult>;
}
