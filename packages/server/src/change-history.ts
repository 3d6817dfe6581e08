/** The newest changes, by entry: as far back as a fixed number of them reaches. */
import type { LockChange } from "@holdfast/wire";

export interface EntryChanges {
  readonly index: number;
  readonly changes: readonly LockChange[];
}

export class ChangeHistory {
  private readonly sizeMax: number;
  private entries: EntryChanges[] = [];
  /** Entries before this place are forgotten; they are cut off now and then. */
  private first = 0;
  private size = 0;
  /** All that entries after this one have changed is known; null: before the first, nothing was forgotten. */
  private knownAfter: number | null = null;

  constructor(sizeMax: number) {
    this.sizeMax = sizeMax;
  }

  /** In the order of the log. */
  add(index: number, changes: readonly LockChange[]): void {
    // What came before the first entry that is seen here was seen by a former life.
    this.knownAfter ??= index - 1;
    if (changes.length > this.sizeMax) return this.forget(index);
    this.entries.push({ index, changes });
    this.size += changes.length;
    while (this.size > this.sizeMax) this.forgetFirst();
  }

  /** Nothing is known of what entries up to this one have changed. */
  forget(index: number): void {
    this.entries = [];
    this.first = 0;
    this.size = 0;
    this.knownAfter = index;
  }

  /** What entries after this one have changed; null when that is not known. */
  after(index: number): readonly EntryChanges[] | null {
    if (this.knownAfter === null || index < this.knownAfter) return null;
    let low = this.first;
    let high = this.entries.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.entries[middle] as EntryChanges).index <= index) low = middle + 1;
      else high = middle;
    }
    return this.entries.slice(low);
  }

  private forgetFirst(): void {
    const { index, changes } = this.entries[this.first] as EntryChanges;
    this.size -= changes.length;
    this.knownAfter = index;
    this.first += 1;
    if (2 * this.first < this.entries.length) return;
    this.entries = this.entries.slice(this.first);
    this.first = 0;
  }
}
