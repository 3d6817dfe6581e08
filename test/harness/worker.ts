/**
 * A process that takes a lock and reports, one JSON line per event. Run as `node worker.js '{"endpoints": [...], "name": "a", ...}'`;
 * ends when its input closes.
 */
import { connect } from "@holdfast/client";
import { machineMs } from "./machine-clock.js";

interface Task {
  readonly endpoints: readonly string[];
  readonly name: string;
  readonly ttlMs: number;
  readonly waitMs?: number;
}

const task = JSON.parse(process.argv[2] ?? "{}") as Task;

function report(event: string, facts: object = {}): void {
  process.stdout.write(`${JSON.stringify({ event, atMs: machineMs(), pid: process.pid, ...facts })}\n`);
}

const holdfast = await connect({ endpoints: [...task.endpoints], ttlMs: task.ttlMs, connectTimeoutMs: 30_000 });
report("connected");
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
try {
  const lock = await holdfast.acquire(task.name, { waitMs: task.waitMs ?? 120_000 });
  report("granted", { token: lock.token, remainingMs: lock.remainingMs() });
  lock.signal.addEventListener("abort", () =>
    report("lost", { reason: String((lock.signal.reason as { reason?: unknown })?.reason) }),
  );
} catch (error) {
  report("failed", { code: (error as { code?: unknown }).code });
}
