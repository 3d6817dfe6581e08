/** Milliseconds of the machine's monotonic clock: those of several processes compare, also when the wall clock is set meanwhile. */
export function machineMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
