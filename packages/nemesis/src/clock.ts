/** True time of a run: the machine's one monotonic clock, which all of its processes share, those with clocks of another rate too. */
import { trueMs } from "./machine/clocks.js";

export function machineMs(): number {
  return trueMs();
}
