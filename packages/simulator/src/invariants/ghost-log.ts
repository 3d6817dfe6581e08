/**
 * What the all-seeing watch remembers of logs: for each (index, term) the chain value that was seen there first, and the one entry that was
 * committed at each index. Entries far below the commit point are forgotten; nothing is then said of them.
 */
import type { Entry, Index } from "@holdfast/raft";

interface Variant {
  readonly term: number;
  readonly chain: number;
  readonly next: Variant | null;
}

/** Entries remembered below the commit point. */
const windowEntries = 4_096;

export class GhostLog {
  /** Entries of different terms at one index: mostly one, hence a list. */
  readonly #variants = new Map<number, Variant>();
  readonly #committed = new Map<number, number>();
  #commitPoint: number;
  /** Below this index everything is forgotten. */
  #lowest: number;

  constructor(firstIndex: number) {
    this.#commitPoint = firstIndex - 1;
    this.#lowest = firstIndex;
  }

  /** The highest index that any node ever knew to be committed. */
  get commitPoint(): Index {
    return this.#commitPoint as Index;
  }

  /** The chain value seen first at (index, term); null when none is known. */
  chainFor(index: number, term: number): number | null {
    for (let each = this.#variants.get(index) ?? null; each !== null; each = each.next) {
      if (each.term === term) return each.chain;
    }
    return null;
  }

  noteEntry({ index, term, chain }: Entry): void {
    if (index < this.#lowest) return;
    this.#variants.set(index, { term, chain, next: this.#variants.get(index) ?? null });
  }

  /** The chain value of the entry that was committed there; null when it is not, or is forgotten. */
  committedChain(index: number): number | null {
    return this.#committed.get(index) ?? null;
  }

  /** The next index is committed. */
  commit(chain: number): void {
    this.#commitPoint += 1;
    this.#committed.set(this.#commitPoint, chain);
    for (; this.#lowest < this.#commitPoint - windowEntries; this.#lowest += 1) {
      this.#variants.delete(this.#lowest);
      this.#committed.delete(this.#lowest);
    }
  }
}
