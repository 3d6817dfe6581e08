/** How many random runs a property gets: HOLDFAST_RUNS multiplies them, for a long night. */
export function runs(count: number): number {
  return Math.ceil(count * Number(process.env["HOLDFAST_RUNS"] ?? "1"));
}
