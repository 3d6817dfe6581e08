/** Guards for SQLite 3.35 and later, in better-sqlite3 or node:sqlite. They are synchronous, as these are. */
export { sqliteFenceTableSql, sqliteFences } from "./sqlite/fence-table.js";
export type { SqliteFenceTableOptions, SqliteFences } from "./sqlite/fence-table.js";
export { sqliteGuard } from "./sqlite/row-guard.js";
export type { SqliteGuard, SqliteGuardOptions, SqliteKey } from "./sqlite/row-guard.js";
export type { SqliteDatabase, SqliteRow, SqliteStatement } from "./sqlite/types.js";
