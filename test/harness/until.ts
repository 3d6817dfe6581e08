/** Polling with a generous limit: real processes on a shared machine take their time, and a fixed sleep is either too short or too long. */
import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";

/** Resolves with the first value of `probe` that is neither null, undefined nor false. */
export async function until<T>(
  what: string,
  probe: () => T | Promise<T>,
  limitMs = 30_000,
  everyMs = 20,
): Promise<Exclude<T, null | undefined | false>> {
  const end = performance.now() + limitMs;
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
    if (performance.now() > end) {
      throw new Error(`not within ${limitMs} ms: ${what}`, problem === null ? {} : { cause: problem });
    }
    await sleep(everyMs);
  }
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
