import { until as untilWithin } from "../src/until.js";

/** Waits for a condition of real processes, never for a time: on a busy machine they take long. */
export async function until(what: string, probe: () => boolean | Promise<boolean>, limitMs = 30_000): Promise<void> {
  await untilWithin(what, limitMs, probe);
}
