/**
 * What the workers write to: for each lock a register behind a guard, one without, and a list of all writes that were accepted, written in
 * the same transaction as each. That list is the truth about writes whose answers were lost.
 */
import type { StoreFigures } from "../run/summary.js";
import type { StorePool } from "./driver.js";

export const guardedTable = { table: "guarded", key: "name", fence: "fence" } as const;

export async function makeTables(pool: StorePool, names: readonly string[]): Promise<void> {
  await pool.query("CREATE TABLE guarded (name text PRIMARY KEY, value bigint NOT NULL, fence bigint NOT NULL)");
  await pool.query("CREATE TABLE unguarded (name text PRIMARY KEY, value bigint NOT NULL)");
  await pool.query(
    `CREATE TABLE operations (seq bigserial PRIMARY KEY, op text UNIQUE NOT NULL, kind text NOT NULL, name text NOT NULL)`,
  );
  for (const name of names) {
    await pool.query("INSERT INTO guarded VALUES ($1, 0, 0)", [name]);
    await pool.query("INSERT INTO unguarded VALUES ($1, 0)", [name]);
  }
}

/** Operations that took effect, by their names given by the workers; `seq` rises in the order in which a register took them. */
export async function acceptedOperations(pool: StorePool): Promise<ReadonlyMap<string, number>> {
  const { rows } = await pool.query("SELECT op, seq::int AS seq FROM operations ORDER BY seq");
  return new Map(rows.map(({ op, seq }) => [String(op), Number(seq)]));
}

/** Each write puts one more into its register than it had read: what is missing there at the end was overwritten unseen. */
export async function storeFigures(pool: StorePool, refused: number): Promise<StoreFigures> {
  const guarded = await figuresOf(pool, "guarded", "guardedWrite");
  const unguarded = await figuresOf(pool, "unguarded", "unguardedWrite");
  return {
    guardedWrites: guarded.writes,
    refused,
    lostGuarded: guarded.writes - guarded.value,
    unguardedWrites: unguarded.writes,
    lostUnguarded: unguarded.writes - unguarded.value,
  };
}

async function figuresOf(
  pool: StorePool,
  table: "guarded" | "unguarded",
  kind: string,
): Promise<{ readonly writes: number; readonly value: number }> {
  const values = await pool.query(`SELECT coalesce(sum(value), 0)::int AS value FROM ${table}`);
  const writes = await pool.query("SELECT count(*)::int AS writes FROM operations WHERE kind = $1", [kind]);
  return { writes: Number(writes.rows[0]?.["writes"]), value: Number(values.rows[0]?.["value"]) };
}
