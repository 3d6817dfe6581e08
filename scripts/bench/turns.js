/** Turns of an event loop, and how much of each the garbage collector took, and waiting for a core. */

/** How often a leader speaks to its followers by default. */
export const heartbeatMs = 100;

/** Shorter ones are of no interest. */
const shortestMs = 5;

/**
 * @typedef {{ fromMs: number, toMs: number, waitedMs: number }} Turn Of which the thread could have run for `waitedMs`, but other threads
 *   had the cores.
 */

export class Turns {
  /** @type {Turn[]} */
  #turns = [];
  /** @type {{ fromMs: number, toMs: number }[]} */
  #pauses = [];

  /**
   * @param {number} fromMs
   * @param {number} toMs
   * @param {number} waitedMs
   */
  add(fromMs, toMs, waitedMs) {
    if (toMs - fromMs >= shortestMs) this.#turns.push({ fromMs, toMs, waitedMs });
  }

  /**
   * A garbage collection; it may be told after the turn that it belongs to.
   * @param {number} fromMs
   * @param {number} toMs
   */
  addPause(fromMs, toMs) {
    if (toMs > fromMs) this.#pauses.push({ fromMs, toMs });
  }

  /**
   * The longest turn; the longest without waiting for a core; and the longest of our own work, without the garbage collector's either. A
   * collection may have waited for a core too, so that the last one may be told too long, not too short. 0 when all were short.
   */
  longest() {
    return {
      longestMs: largest(this.#turns.map(lengthOf)),
      longestRunMs: largest(this.#turns.map(runOf)),
      longestOwnMs: largest(this.#turns.map((turn) => Math.min(runOf(turn), lengthOf(turn) - this.#pausedMs(turn)))),
    };
  }

  /** @param {number} ms */
  longerThan(ms) {
    return this.#turns.filter((turn) => lengthOf(turn) > ms).length;
  }

  /** @param {Turn} turn */
  #pausedMs(turn) {
    return this.#pauses.reduce(
      (sum, { fromMs, toMs }) => sum + Math.max(0, Math.min(toMs, turn.toMs) - Math.max(fromMs, turn.fromMs)),
      0,
    );
  }
}

/** @param {Turn} turn */
function lengthOf({ fromMs, toMs }) {
  return toMs - fromMs;
}

/** @param {Turn} turn */
function runOf(turn) {
  return lengthOf(turn) - turn.waitedMs;
}

/** @param {readonly number[]} values */
function largest(values) {
  return values.reduce((most, value) => Math.max(most, value), 0);
}
