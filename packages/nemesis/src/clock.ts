/** True time of a run: the machine's one monotonic clock, which all of its processes share. */
export function machineMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
