/** Guards for MySQL 8 and MariaDB 10.5 and later, with InnoDB; tested on MariaDB 10.11. Bring your own driver: the promises of `mysql2`. */
export { mysqlFenceTableSql, mysqlFences } from "./mysql/fence-table.js";
export type { MysqlFenceTableOptions, MysqlFences } from "./mysql/fence-table.js";
export { mysqlGuard } from "./mysql/row-guard.js";
export type { MysqlGuard, MysqlGuardOptions, MysqlKey } from "./mysql/row-guard.js";
export type { MysqlBody, MysqlTransaction, MysqlTransactionOptions } from "./mysql/transaction.js";
export type { MysqlConnection, MysqlPool, MysqlQueryable, MysqlRow } from "./mysql/types.js";
