/** Polling with a generous limit: real processes on a shared machine take their time, and a fixed sleep is either too short or too long. */
import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";

/**
 * Resolves with the first value of `probe` that is neither null, undefined nor false. It is called every `everyMs`; unless that is given,
 * every 20 ms at first and ever more seldom: what it waits for takes a tenth longer at most, and a look at three nodes that are just
 * starting costs CPU time that they need.
 */
export async function until<T>(
  what: string,
  probe: () => T | Promise<T>,
  limitMs = 30_000,
  everyMs?: number,
): Promise<Exclude<T, null | undefined | false>> {
  const startMs = performance.now();
  let problem: unknown = null;
  for (;;) {
    try {
      const value = await probe();
      if (value !== null && value !== undefined && value !== false)
        return value as Exclude<T, null | undefined | false>;
      problem = null;
    } catch (error) {
      problem = error;
    }
    const waitedMs = performance.now() - startMs;
    if (waitedMs > limitMs) {
      throw new Error(`not within ${limitMs} ms: ${what}`, problem === null ? {} : { cause: problem });
    }
    await sleep(everyMs ?? Math.max(20, waitedMs / 10));
  }
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
