/**
 * Loaded into a measured node: it watches the event loop and the garbage collector, and answers what it saw. A timer that is due every
 * millisecond fires once a turn of the loop; how much later than due it fires is how long the turn was.
 *
 * Messages: "reset" begins anew; "report" answers with the figures since then; "heap" collects all garbage first and tells what is left.
 */
import { PerformanceObserver } from "node:perf_hooks";
import { heartbeatMs, Turns } from "../turns.js";

const everyMs = 1;

let turns = new Turns();
let lastMs = performance.now();

setInterval(() => {
  const nowMs = performance.now();
  turns.add(lastMs, nowMs);
  lastMs = nowMs;
}, everyMs).unref();

new PerformanceObserver((list) => {
  for (const { startTime, duration } of list.getEntries()) turns.addPause(startTime, startTime + duration);
}).observe({ entryTypes: ["gc"] });

process.on("message", (/** @type {{ kind: string }} */ { kind }) => {
  if (kind === "reset") turns = new Turns();
  if (kind === "heap") globalThis.gc?.();
  const { longestMs, longestOwnMs } = turns.longest();
  process.send?.({
    longestMs,
    longestOwnMs,
    late: turns.longerThan(heartbeatMs),
    heapBytes: process.memoryUsage().heapUsed,
  });
});
process.channel?.unref();
