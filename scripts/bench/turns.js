/** Turns of an event loop, and how much of each the garbage collector took. */

/** How often a leader speaks to its followers by default. */
export const heartbeatMs = 100;

/** Shorter ones are of no interest. */
const shortestMs = 5;

export class Turns {
  /** @type {{ fromMs: number, toMs: number }[]} */
  #turns = [];
  /** @type {{ fromMs: number, toMs: number }[]} */
  #pauses = [];

  /**
   * @param {number} fromMs
   * @param {number} toMs
   */
  add(fromMs, toMs) {
    if (toMs - fromMs >= shortestMs) this.#turns.push({ fromMs, toMs });
  }

  /**
   * A garbage collection; it may be told after the turn that it belongs to.
   * @param {number} fromMs
   * @param {number} toMs
   */
  addPause(fromMs, toMs) {
    if (toMs > fromMs) this.#pauses.push({ fromMs, toMs });
  }

  /** The longest turn, and the longest of our own work, without the garbage collector's; 0 when all were short. */
  longest() {
    const lengths = this.#turns.map(({ fromMs, toMs }) => toMs - fromMs);
    const own = this.#turns.map((turn) => turn.toMs - turn.fromMs - this.#pausedMs(turn));
    return { longestMs: largest(lengths), longestOwnMs: largest(own) };
  }

  /** @param {number} ms */
  longerThan(ms) {
    return this.#turns.filter(({ fromMs, toMs }) => toMs - fromMs > ms).length;
  }

  /** @param {{ fromMs: number, toMs: number }} turn */
  #pausedMs(turn) {
    return this.#pauses.reduce(
      (sum, { fromMs, toMs }) => sum + Math.max(0, Math.min(toMs, turn.toMs) - Math.max(fromMs, turn.fromMs)),
      0,
    );
  }
}

/** @param {readonly number[]} values */
function largest(values) {
  return values.reduce((most, value) => Math.max(most, value), 0);
}
