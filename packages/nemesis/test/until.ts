/** Waits for a condition of real processes, never for a time: on a busy machine they take long. */
import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";

const everyMs = 20;

export async function until(what: string, probe: () => boolean | Promise<boolean>, limitMs = 30_000): Promise<void> {
  const startMs = performance.now();
  while (!(await probe())) {
    if (performance.now() - startMs > limitMs) throw new Error(`not within ${limitMs} ms: ${what}`);
    await sleep(everyMs);
  }
}
