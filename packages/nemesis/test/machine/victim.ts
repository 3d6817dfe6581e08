/**
 * A process that faults of the machine are put under, and that says in lines of JSON what it sees: of each line on its input, a path, it writes
 * and syncs the file, and tells how long that took, the code of the error, and its clocks. Ends with its input.
 */
import { closeSync, fdatasyncSync, openSync, writeSync } from "node:fs";
import { uptime } from "node:os";
import { createInterface } from "node:readline";
import { trueMs } from "../../src/machine/clocks.js";

export interface Sight {
  readonly code: string | null;
  readonly wallMs: number;
  /** How long its timer of 200 ms, and all that it did, took by its own clocks. */
  readonly tookMs: number;
  readonly uptimeMs: number;
  /** When it says this. */
  readonly trueMs: number;
}

/** More than a block, so that no room of the last one is left. */
const bytes = Buffer.alloc(10_000, "x");
const timerMs = 200;

function write(path: string): string | null {
  try {
    const file = openSync(path, "a");
    try {
      writeSync(file, bytes);
      fdatasyncSync(file);
      return null;
    } finally {
      closeSync(file);
    }
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? String(error);
  }
}

const input = createInterface({ input: process.stdin });
input.on("line", (path) => {
  const startMs = performance.now();
  const startedUp = uptime();
  const code = write(path);
  setTimeout(() => {
    const tookMs = performance.now() - startMs;
    const sight: Sight = {
      code,
      wallMs: Date.now(),
      tookMs,
      uptimeMs: (uptime() - startedUp) * 1_000,
      trueMs: trueMs(),
    };
    process.stdout.write(`${JSON.stringify(sight)}\n`);
  }, timerMs);
});
input.on("close", () => process.exit());
