/** Medians and percentiles of what was measured. */

/**
 * The middle value; of an even number of values the mean of the two in the middle. NaN when there are none.
 * @param {readonly number[]} values
 */
export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  if (sorted.length % 2 === 1) return sorted[middle];
  return ((sorted[middle - 1] ?? Number.NaN) + (sorted[middle] ?? Number.NaN)) / 2;
}

/**
 * By nearest rank: the smallest value that at least `fraction` of all don't exceed. NaN when there are none.
 * @param {ArrayLike<number>} values
 * @param {number} fraction 0 to 1.
 */
export function percentile(values, fraction) {
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.max(0, Math.ceil(sorted.length * fraction) - 1)] ?? Number.NaN;
}

/**
 * @typedef {{ median: number, min: number, max: number, rounds: Record<string, number> }} Summary `rounds` by their number, from 1 on.
 * @param {ReadonlyMap<number, number>} byRound
 * @returns {Summary}
 */
export function summaryOf(byRound) {
  const values = [...byRound.values()];
  return {
    median: median(values),
    min: Math.min(...values),
    max: Math.max(...values),
    rounds: Object.fromEntries([...byRound].map(([round, value]) => [String(round), value])),
  };
}

/**
 * Ours by theirs, round by round: only figures of one round were measured under like conditions. Rounds that one of them lacks don't count.
 * NaN when no round has both.
 * @param {Summary} ours
 * @param {Summary} theirs
 */
export function ratioOf(ours, theirs) {
  const rounds = Object.keys(ours.rounds).filter((round) => round in theirs.rounds);
  return median(rounds.map((round) => (ours.rounds[round] ?? Number.NaN) / (theirs.rounds[round] ?? Number.NaN)));
}
