/** CPU time and memory of processes, as Linux tells them in /proc. */
import { readFileSync } from "node:fs";

/** The kernel counts CPU time for /proc in hundredths of a second on every architecture that Node runs on (USER_HZ). */
const ticksPerSecond = 100;

/**
 * User and system CPU seconds from the text of /proc/PID/stat. The command in it, in parentheses, may hold anything: the fields are
 * counted from the last parenthesis on.
 * @param {string} stat
 */
export function cpuSecondsIn(stat) {
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const ticks = Number(fields[11]) + Number(fields[12]);
  if (!Number.isFinite(ticks)) throw new Error(`no CPU times in "${stat.trim()}"`);
  return ticks / ticksPerSecond;
}

/**
 * Resident bytes from the text of /proc/PID/status.
 * @param {string} status
 */
export function residentBytesIn(status) {
  const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1];
  if (kilobytes === undefined) throw new Error("no VmRSS in the process's status");
  return Number(kilobytes) * 1_024;
}

/**
 * Of all of them together, since each one's start. Throws when one has ended.
 * @param {readonly number[]} pids
 */
export function cpuSeconds(pids) {
  return pids.reduce((sum, pid) => sum + cpuSecondsIn(readFileSync(`/proc/${pid}/stat`, "utf8")), 0);
}

/** @param {number} pid */
export function residentBytes(pid) {
  return residentBytesIn(readFileSync(`/proc/${pid}/status`, "utf8"));
}
