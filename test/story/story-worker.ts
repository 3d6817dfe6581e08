/**
 * A worker of the story: takes the lock on a document, reads it, works on it in memory, and saves it when told to. It looks at nothing
 * before it saves: whether the late save is harmless is the resource's business.
 */
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { connect } from "@holdfast/client";
import { postgresGuard } from "@holdfast/fence/postgres";
import { machineMs } from "../harness/machine-clock.js";
import type { TestPool } from "../harness/postgres.js";

export interface StoryTask {
  readonly name: string;
  readonly endpoints: readonly string[];
  readonly ttlMs: number;
  readonly database: string;
  readonly document: string;
  readonly guarded: boolean;
}

export interface StoryEvent {
  readonly event: "granted" | "lost" | "state" | "saved" | "refused" | "failed";
  readonly atMs: number;
  readonly token?: number;
  readonly reason?: string;
  readonly state?: string;
  readonly presented?: number;
  readonly highest?: number;
  readonly message?: string;
}

const task = JSON.parse(process.argv[2] ?? "{}") as StoryTask;
const drivers = createRequire(new URL("../../drivers/package.json", import.meta.url));
const { Pool } = drivers("pg") as { Pool: new (options: object) => TestPool };
const pool = new Pool({ connectionString: task.database, max: 1 });
pool.on("error", () => {});
const documents = postgresGuard(pool, { table: "documents", key: "id", fence: "fence" });

function report(event: StoryEvent["event"], facts: Omit<StoryEvent, "event" | "atMs"> = {}): void {
  process.stdout.write(`${JSON.stringify({ event, atMs: machineMs(), ...facts })}\n`);
}

const holdfast = await connect({ endpoints: [...task.endpoints], ttlMs: task.ttlMs, info: task.name });
const lock = await holdfast.acquire(`document:${task.document}`, { waitMs: 120_000 });
lock.signal.addEventListener("abort", () =>
  report("lost", { reason: String((lock.signal.reason as { reason?: unknown }).reason) }),
);
const { rows } = await pool.query("SELECT body FROM documents WHERE id = $1", [task.document]);
const body = `${String(rows[0]?.["body"])}, then edited by ${task.name}`;
report("granted", { token: lock.token });

async function save(): Promise<void> {
  report("state", { state: lock.state });
  try {
    if (task.guarded) await documents.update(lock, task.document, { body });
    else await pool.query("UPDATE documents SET body = $1 WHERE id = $2", [body, task.document]);
    report("saved", { token: lock.token });
  } catch (error) {
    const { code, presented, highest, message } = error as {
      code?: string;
      presented?: number;
      highest?: number;
      message: string;
    };
    if (code === "stale_token" && presented !== undefined && highest !== undefined)
      report("refused", { presented, highest });
    else report("failed", { message });
  }
}

createInterface({ input: process.stdin })
  .on("line", (line) => {
    if (line === "save") void save();
  })
  .on("close", () => process.exit(0));
