/** Guards for PostgreSQL 10 and later. Bring your own driver: `pg`, or anything with the shape of its Pool. */
export { fenceTableSql, postgresFences } from "./postgres/fence-table.js";
export type { FenceTableOptions, PostgresFences } from "./postgres/fence-table.js";
export { postgresGuard } from "./postgres/row-guard.js";
export type { PostgresGuard } from "./postgres/row-guard.js";
export type { PostgresGuardOptions, PostgresKey } from "./postgres/row-statements.js";
export type { PostgresTransaction, TransactionBody, TransactionOptions } from "./postgres/transaction.js";
export type { PostgresClient, PostgresPool, PostgresQueryable, PostgresResult, Row } from "./postgres/types.js";
