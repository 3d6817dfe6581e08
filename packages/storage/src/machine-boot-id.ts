import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

/**
 * A text that is the same until the machine is started again. A torn write (wrong bytes at the very end of a file) is what a power
 * loss leaves and a killed process can't, so it is only harmless when this text has changed.
 *
 * Linux and macOS have such an id. Elsewhere it is a constant: the uptime would have to be set against wall time, and a
 * step of the wall clock would look like a new start. A constant errs on the safe side: a torn end is refused there.
 */
export function readMachineBootId(): string {
  try {
    if (process.platform === "linux") return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    if (process.platform === "darwin") {
      return execFileSync("/usr/sbin/sysctl", ["-n", "kern.bootsessionuuid"], { encoding: "utf8" }).trim();
    }
  } catch {
    // A container may hide /proc: the constant is the strict reading.
  }
  return "unknown";
}
