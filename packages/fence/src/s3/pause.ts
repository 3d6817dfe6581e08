import { setTimeout as sleep } from "node:timers/promises";

/** Ever longer, up to 200 ms and never of one length: writers that met once shouldn't meet again. */
export async function pauseAfter(attempt: number): Promise<void> {
  await sleep(Math.random() * Math.min(200, 10 * 2 ** attempt));
}
