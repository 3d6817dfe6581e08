/** The stores of the one suite, by name. */
import type { StoreKind } from "./guarded-store.js";

export async function storeKind(kind: string): Promise<StoreKind> {
  const all = await allKinds();
  const found = all.find((each) => each.kind === kind);
  if (found === undefined) throw new Error(`no such store: ${kind}`);
  return found;
}

async function allKinds(): Promise<StoreKind[]> {
  const { pooledKinds, postgresFenceTable, postgresRows } = await import("./stores/postgres.js");
  const { redisKeys, redisRegister } = await import("./stores/redis.js");
  const { mysqlFenceTable, mysqlRows } = await import("./stores/mysql.js");
  const { fileKinds } = await import("./stores/files.js");
  const { sqliteKinds } = await import("./stores/sqlite.js");
  const { httpHandlers } = await import("./stores/http.js");
  const { radosgwObjects, s3ServerObjects } = await import("./stores/s3.js");
  return [
    postgresRows,
    postgresFenceTable,
    ...pooledKinds,
    redisKeys,
    redisRegister,
    ...sqliteKinds,
    ...fileKinds,
    mysqlRows,
    mysqlFenceTable,
    radosgwObjects,
    s3ServerObjects,
    httpHandlers,
  ];
}
