/** Waiting for what other processes do. */
import { setTimeout as sleep } from "node:timers/promises";

/**
 * Asks again and again until the answer is neither null nor false; a probe that throws is asked again too. Rejects after `limitMs`.
 * @template T
 * @param {string} what For the error's message.
 * @param {() => T | null | false | Promise<T | null | false>} probe
 * @param {{ limitMs?: number, everyMs?: number }} [options]
 * @returns {Promise<T>}
 */
export async function until(what, probe, { limitMs = 60_000, everyMs = 50 } = {}) {
  const untilMs = performance.now() + limitMs;
  for (;;) {
    /** @type {unknown} */
    let cause;
    try {
      const value = await probe();
      if (value !== null && value !== false) return value;
    } catch (error) {
      cause = error;
    }
    if (performance.now() > untilMs) throw new Error(`not within ${limitMs} ms: ${what}`, { cause });
    await sleep(everyMs);
  }
}
