/**
 * What of this node's promises is durable. `persisted` names an output, not an index: a truncation after that output was taken lowers
 * what it vouches for, since its entries are gone by the time anybody could count on them.
 */
import { assert } from "./assert.js";
import { indexAfter, maxIndex, minIndex } from "./position.js";
import type { HardState, Index, LogBase } from "./types.js";

interface Write {
  readonly number: number;
  readonly takenMs: number;
  readonly hardState: HardState | null;
  /** The snapshot that this write completes. */
  readonly installs: LogBase | null;
  /** The log is durable up to here once this write is. */
  vouchesFor: Index;
}

export class Writes {
  /** In the order of outputs; those with nothing to write are not here. */
  readonly #inFlight: Write[] = [];
  #persistedIndex: Index;
  #hardState: HardState;

  constructor(hardState: HardState, persistedIndex: Index) {
    this.#hardState = hardState;
    this.#persistedIndex = persistedIndex;
  }

  /** The own log is durable up to here. */
  get persistedIndex(): Index {
    return this.#persistedIndex;
  }

  get hardState(): HardState {
    return this.#hardState;
  }

  /** When the oldest write in flight was handed out; Infinity when there is none. */
  get oldestMs(): number {
    return this.#inFlight[0]?.takenMs ?? Number.POSITIVE_INFINITY;
  }

  onTaken(
    number: number,
    takenMs: number,
    hardState: HardState | null,
    lastIndex: Index,
    installs: LogBase | null,
  ): void {
    this.#inFlight.push({ number, takenMs, hardState, installs, vouchesFor: lastIndex });
  }

  /** Returns the snapshot that is complete now, if any. */
  onPersisted(number: number): LogBase | null {
    let installed: LogBase | null = null;
    for (let write = this.#inFlight[0]; write !== undefined && write.number <= number; write = this.#inFlight[0]) {
      this.#inFlight.shift();
      this.#persistedIndex = maxIndex(this.#persistedIndex, write.vouchesFor);
      if (write.hardState !== null) this.#adopt(write.hardState);
      if (write.installs !== null) installed = write.installs;
    }
    return installed;
  }

  /** Entries from `index` on are gone from the log. */
  onTruncated(index: Index): void {
    const last = indexAfter(index, -1);
    this.#persistedIndex = minIndex(this.#persistedIndex, last);
    for (const write of this.#inFlight) write.vouchesFor = minIndex(write.vouchesFor, last);
  }

  #adopt(hardState: HardState): void {
    assert(hardState.term >= this.#hardState.term, "the durable term never falls");
    this.#hardState = hardState;
  }
}
