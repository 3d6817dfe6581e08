/** The driver `pg`, which what only tests need brings along (test/drivers). Its types are written down as far as they are used. */
import { createRequire } from "node:module";
import type { PostgresClient, PostgresPool } from "@holdfast/fence/postgres";

export interface StorePool extends PostgresPool {
  query(text: string, values?: unknown[]): Promise<{ readonly rows: Record<string, unknown>[] }>;
  connect(): Promise<PostgresClient>;
  on(event: "error", listener: (error: Error) => void): unknown;
  end(): Promise<void>;
}

interface Driver {
  readonly Pool: new (config: object) => StorePool;
}

const require = createRequire(new URL("../../../../../test/drivers/package.json", import.meta.url));

/** Null when it is installed, else what to do. */
export function missingDriver(): string | null {
  try {
    require.resolve("pg");
    return null;
  } catch {
    return "the driver pg is not installed: run `node scripts/test-drivers.js`";
  }
}

export function openPool(url: string, connectionsMax: number): StorePool {
  const { Pool } = require("pg") as Driver;
  const pool = new Pool({ connectionString: url, max: connectionsMax, connectionTimeoutMillis: 60_000 });
  // One that lies idle in the pool tells of its end here; the next query takes another.
  pool.on("error", () => undefined);
  return pool;
}
