// Compiled by test/fence/pg-types.test.ts: the types of the real clients fit the guards, which don't depend on them.
import { mysqlFences, mysqlGuard } from "@holdfast/fence/mysql";
import { redisGuard } from "@holdfast/fence/redis";
import type { RedisGuard } from "@holdfast/fence/redis";
import { sqliteFences, sqliteGuard } from "@holdfast/fence/sqlite";
import Database from "better-sqlite3";
import { Cluster, Redis } from "ioredis";
import { createPool } from "mysql2/promise";
import { DatabaseSync } from "node:sqlite";
import { createClient, createClientPool, createCluster } from "redis";

const lock = { token: 33, fence: (name?: string) => ({ resource: name ?? "doc:42", token: 33 }) };

const pool = createPool("mysql://localhost/app");
const documents = mysqlGuard(pool, { table: "documents", key: "id", fence: "fence" });

export async function save(): Promise<void> {
  await documents.update(lock, 42, { body: "new" });
  await mysqlFences(pool).transaction(lock, (tx) => tx.execute("DELETE FROM bookings WHERE amount = ?", [0]));
  const connection = await pool.getConnection();
  await connection.beginTransaction();
  await documents.take(connection, lock, 42);
  await connection.commit();
  connection.release();
}

export const guards: readonly RedisGuard[] = [
  redisGuard(createClient()),
  redisGuard(createClientPool()),
  redisGuard(createCluster({ rootNodes: [] })),
  redisGuard(new Redis()),
  redisGuard(new Cluster([])),
];

export function saveHere(): void {
  for (const database of [new Database("app.db"), new DatabaseSync("app.db")]) {
    sqliteGuard(database, { table: "documents", key: "id", fence: "fence" }).update(lock, 42, { body: "new" });
    sqliteFences(database).transaction(lock, () => database.exec("DELETE FROM bookings"));
  }
}
