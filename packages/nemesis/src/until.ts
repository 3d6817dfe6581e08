/** Polling with a limit: what is waited for comes when it comes, on a busy machine later. */
import { setTimeout as sleep } from "node:timers/promises";

/** Resolves with the first value of `probe` that is neither null, undefined nor false; rejects when none comes within the limit. */
export async function until<T>(
  what: string,
  limitMs: number,
  probe: () => T | Promise<T>,
): Promise<Exclude<T, null | undefined | false>> {
  const startMs = performance.now();
  for (;;) {
    const value = await probe();
    if (value !== null && value !== undefined && value !== false) return value as Exclude<T, null | undefined | false>;
    const waitedMs = performance.now() - startMs;
    if (waitedMs > limitMs) throw new Error(`not within ${limitMs} ms: ${what}`);
    await sleep(Math.max(20, Math.min(250, waitedMs / 10)));
  }
}
