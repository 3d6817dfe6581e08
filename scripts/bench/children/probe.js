/**
 * Loaded into a measured node: it watches the event loop and the garbage collector, and answers what it saw. A timer that is due every
 * millisecond fires once a turn of the loop; how much later than due it fires is how long the turn was. For how much of that the thread
 * waited while others had the cores is told by the kernel (/proc/PID/task/TID/schedstat, the second number, in ns).
 *
 * Messages: "reset" begins anew; "report" answers with the figures since then; "heap" collects all garbage first and tells what is left;
 * "profile" begins a CPU profile, "shares" ends it and answers with what fell where.
 */
import { openSync, readSync } from "node:fs";
import { Session } from "node:inspector/promises";
import { PerformanceObserver } from "node:perf_hooks";
import { sharesOf } from "../profile-shares.js";
import { heartbeatMs, Turns } from "../turns.js";

const everyMs = 1;

let turns = new Turns();
let lastMs = performance.now();
const schedule = openSync(`/proc/self/task/${process.pid}/schedstat`, "r");
const scheduleText = Buffer.alloc(128);
let lastWaitMs = waitMs();

setInterval(() => {
  const nowMs = performance.now();
  const nowWaitMs = waitMs();
  turns.add(lastMs, nowMs, nowWaitMs - lastWaitMs);
  lastMs = nowMs;
  lastWaitMs = nowWaitMs;
}, everyMs).unref();

/** For how long this thread has waited for a core. */
function waitMs() {
  const length = readSync(schedule, scheduleText, 0, scheduleText.length, 0);
  return Number(scheduleText.toString("latin1", 0, length).split(" ")[1]) / 1e6;
}

new PerformanceObserver((list) => {
  for (const { startTime, duration } of list.getEntries()) turns.addPause(startTime, startTime + duration);
}).observe({ entryTypes: ["gc"] });

/** @type {Session | null} */
let profiled = null;

process.on("message", (/** @type {{ kind: string }} */ { kind }) => {
  if (kind === "profile") return void beginProfile().then(report);
  if (kind === "shares") return void profileEnded().then((shares) => process.send?.(shares));
  if (kind === "reset") turns = new Turns();
  if (kind === "heap") globalThis.gc?.();
  report();
});
process.channel?.unref();

function report() {
  process.send?.({
    ...turns.longest(),
    late: turns.longerThan(heartbeatMs),
    heapBytes: process.memoryUsage().heapUsed,
  });
}

async function beginProfile() {
  profiled = new Session();
  profiled.connect();
  await profiled.post("Profiler.enable");
  await profiled.post("Profiler.start");
}

async function profileEnded() {
  if (profiled === null) throw new Error("no profile was begun");
  const { profile } = await profiled.post("Profiler.stop");
  profiled.disconnect();
  profiled = null;
  return sharesOf(profile);
}
