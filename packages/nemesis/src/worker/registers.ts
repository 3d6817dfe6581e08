/** The two registers of a lock: read-modify-write behind the PostgreSQL guard, and without one. */
import { postgresGuard, type PostgresGuard } from "@holdfast/fence/postgres";
import { machineMs } from "../clock.js";
import { openPool } from "../store/driver.js";
import type { StorePool } from "../store/driver.js";
import { guardedTable } from "../store/tables.js";
import type { Reporter } from "./reporter.js";

/** What the worker presents: fixed when it looked, as a program would that computes for a while. */
export interface Presented {
  readonly resource: string;
  readonly token: number;
}

export class Registers {
  private readonly client: string;
  private readonly reporter: Reporter;
  private readonly pool: StorePool;
  private readonly guard: PostgresGuard;
  private operations = 0;

  constructor(client: string, storeUrl: string, reporter: Reporter) {
    this.client = client;
    this.reporter = reporter;
    this.pool = openPool(storeUrl, 2);
    this.guard = postgresGuard(this.pool, guardedTable);
  }

  /** Null when it was refused, or when nobody knows. From now on no older token is accepted. */
  readGuarded(fence: Presented): Promise<number | null> {
    return this.guarded(fence, "guardedRead", null);
  }

  async readUnguarded(name: string): Promise<number> {
    const { rows } = await this.pool.query("SELECT value::int AS value FROM unguarded WHERE name = $1", [name]);
    return Number(rows[0]?.["value"]);
  }

  writeGuarded(fence: Presented, value: number): Promise<number | null> {
    return this.guarded(fence, "guardedWrite", value);
  }

  async writeUnguarded(name: string, value: number): Promise<void> {
    await this.pool.query(
      `WITH noted AS (INSERT INTO operations (op, kind, name) VALUES ($1, 'unguardedWrite', $2) RETURNING seq)
       UPDATE unguarded SET value = $3 WHERE name = $2`,
      [this.nextOp(), name, value],
    );
  }

  close(): Promise<void> {
    return this.pool.end();
  }

  private async guarded(
    fence: Presented,
    kind: "guardedRead" | "guardedWrite",
    value: number | null,
  ): Promise<number | null> {
    const op = this.nextOp();
    const fromMs = machineMs();
    const { resource: name, token } = fence;
    const tell = (result: "accepted" | "refused" | "unknown"): void =>
      this.reporter.tell({ kind: "guarded", op, fromMs, name, token, result });
    try {
      const seen = await this.guard.transaction(fence, name, async (tx) => {
        await tx.query("INSERT INTO operations (op, kind, name) VALUES ($1, $2, $3)", [op, kind, name]);
        const { rows } = await tx.query(
          "UPDATE guarded SET value = coalesce($2::bigint, value) WHERE name = $1 RETURNING value::int AS value",
          [name, value],
        );
        return Number(rows[0]?.["value"]);
      });
      tell("accepted");
      return seen;
    } catch (error) {
      // What else the database says, a lost connection first of all, leaves it open whether it took effect: the store's list tells.
      tell((error as { readonly code?: unknown }).code === "stale_token" ? "refused" : "unknown");
      return null;
    }
  }

  private nextOp(): string {
    this.operations += 1;
    return `${this.client} ${this.operations}`;
  }
}
