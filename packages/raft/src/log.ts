/**
 * The log since its base, in memory. It knows which part no output has taken yet, and re-derives the configuration in force from its
 * entries whenever they change (thesis 4.1: a server always uses the latest configuration in its log).
 */
import { assert, InvariantError } from "./assert.js";
import { indexAfter } from "./position.js";
import type { Configuration, Entry, EntryCodec, Index, LogBase, Position, Term } from "./types.js";

interface ConfigurationChange {
  readonly index: Index;
  readonly configuration: Configuration;
}

export interface Unsaved {
  readonly truncateFrom: Index | null;
  readonly entries: readonly Entry[];
}

/** What an entry costs beside its payload, in limits: its fields in memory and on the wire. */
const entryOverheadBytes = 40;

export const noEntries: readonly Entry[] = Object.freeze([]);

export function entryBytes(payload: Uint8Array): number {
  return payload.length + entryOverheadBytes;
}

export class Log {
  readonly #codec: EntryCodec;
  #base: LogBase;
  #entries: Entry[] = [];
  #changes: ConfigurationChange[] = [];
  #unsavedFrom: Index;
  #truncateFrom: Index | null = null;

  constructor(codec: EntryCodec, base: LogBase) {
    this.#codec = codec;
    this.#base = base;
    this.#unsavedFrom = indexAfter(base.position.index);
  }

  get base(): LogBase {
    return this.#base;
  }

  get baseIndex(): Index {
    return this.#base.position.index;
  }

  get lastIndex(): Index {
    return (this.#base.position.index + this.#entries.length) as Index;
  }

  get lastTerm(): Term {
    return this.#entries.at(-1)?.term ?? this.#base.position.term;
  }

  get lastChain(): number {
    return this.#entries.at(-1)?.chain ?? this.#base.chain;
  }

  get last(): Position {
    return { term: this.lastTerm, index: this.lastIndex };
  }

  /** The configuration in force: the last one in the log, committed or not. */
  get configuration(): Configuration {
    return this.#changes.at(-1)?.configuration ?? this.#base.configuration;
  }

  /** Where the configuration in force stands; the base's index when no entry changes it. */
  get configurationIndex(): Index {
    return this.#changes.at(-1)?.index ?? this.baseIndex;
  }

  /** The one that was in force before it; null when the log doesn't go back that far. */
  get previousConfiguration(): Configuration | null {
    if (this.#changes.length === 0) return null;
    return this.#changes.at(-2)?.configuration ?? this.#base.configuration;
  }

  /** The last one up to `index`, which is not behind the base. */
  configurationAt(index: Index): Configuration {
    return this.#changes.findLast((each) => each.index <= index)?.configuration ?? this.#base.configuration;
  }

  get hasUnsaved(): boolean {
    return this.#truncateFrom !== null || this.#unsavedFrom <= this.lastIndex;
  }

  entryAt(index: Index): Entry | null {
    return this.#entries[index - this.baseIndex - 1] ?? null;
  }

  /** Null outside of [base, last]. */
  termAt(index: Index): Term | null {
    if (index === this.baseIndex) return this.#base.position.term;
    return this.entryAt(index)?.term ?? null;
  }

  /** Null outside of [base, last]. */
  chainAt(index: Index): number | null {
    if (index === this.baseIndex) return this.#base.chain;
    return this.entryAt(index)?.chain ?? null;
  }

  /** The log's state right after `index`, as the base of a snapshot; null outside of [base, last]. */
  baseAt(index: Index): LogBase | null {
    if (index === this.baseIndex) return this.#base;
    const entry = this.entryAt(index);
    if (entry === null) return null;
    return { position: { term: entry.term, index }, chain: entry.chain, configuration: this.configurationAt(index) };
  }

  /**
   * The last index up to `index` whose term is at most `term`: terms never fall along a log, so this is where two logs can first agree.
   * Null when even the base is of a later term.
   */
  lastIndexWithin(index: Index, term: Term): Index | null {
    let low: number = this.baseIndex;
    let high = Math.min(index, this.lastIndex);
    if (high < low || this.#base.position.term > term) return null;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if ((this.termAt(middle as Index) as Term) <= term) low = middle;
      else high = middle - 1;
    }
    return low as Index;
  }

  /** Entries of [from, through], cut where a limit is reached; at least one if there is one. */
  slice(from: Index, through: Index, bytesMax: number, entriesMax: number): readonly Entry[] {
    const first = from - this.baseIndex - 1;
    assert(first >= 0, "entries behind the log's base are never read");
    const end = Math.min(through - this.baseIndex, this.#entries.length, first + entriesMax);
    let at = first;
    for (let bytes = 0; at < end; at += 1) {
      bytes += entryBytes((this.#entries[at] as Entry).payload);
      if (bytes > bytesMax && at > first) break;
    }
    return at > first ? this.#entries.slice(first, at) : noEntries;
  }

  /** Bytes of the entries of [from, through]. */
  bytesOf(from: Index, through: Index): number {
    let bytes = 0;
    for (let at = from - this.baseIndex - 1; at < through - this.baseIndex; at += 1) {
      bytes += entryBytes((this.#entries[at] as Entry).payload);
    }
    return bytes;
  }

  /** Throws the codec's error, and changes nothing, when a configuration entry can't be decoded. */
  append(entry: Entry): void {
    assert(entry.index === this.lastIndex + 1, "the log has no gap");
    assert(entry.term >= this.lastTerm, "terms never fall along the log");
    if (entry.kind === "configuration") {
      this.#changes.push({ index: entry.index, configuration: this.#codec.decodeConfiguration(entry.payload) });
    }
    this.#entries.push(entry);
  }

  /** Removes the entries from `index` on. */
  truncateFrom(index: Index): void {
    assert(index > this.baseIndex, "the log is never truncated behind its base");
    this.#entries.length = Math.min(this.#entries.length, index - this.baseIndex - 1);
    while ((this.#changes.at(-1)?.index ?? 0) >= index) this.#changes.pop();
    this.#noteRemovedFrom(index);
  }

  /** Forgets the entries up to `index`, which becomes the base. */
  compactThrough(index: Index): void {
    if (index <= this.baseIndex) return;
    const base = this.baseAt(index);
    assert(base !== null && index < this.#unsavedFrom, "only saved entries are compacted");
    this.#entries.splice(0, index - this.baseIndex);
    this.#changes = this.#changes.filter((change) => change.index > index);
    this.#base = base;
  }

  /** A snapshot takes the place of the whole log. Saved entries after `kept` (the committed part) are to be removed by the next output. */
  resetTo(base: LogBase, kept: Index): void {
    assert(base.position.index > kept, "a snapshot never takes the log back");
    this.#noteRemovedFrom(indexAfter(kept));
    this.#base = base;
    this.#entries = [];
    this.#changes = [];
    this.#unsavedFrom = indexAfter(base.position.index);
  }

  /** What the next output has to write; afterwards it counts as taken. */
  takeUnsaved(): Unsaved {
    const first = this.#unsavedFrom - this.baseIndex - 1;
    const entries = first < this.#entries.length ? this.#entries.slice(first) : noEntries;
    const truncateFrom = this.#truncateFrom;
    this.#unsavedFrom = indexAfter(this.lastIndex);
    this.#truncateFrom = null;
    return { truncateFrom, entries };
  }

  /** Takes over what storage has recovered: it is saved already. */
  restore(entries: readonly Entry[]): void {
    for (const entry of entries) {
      if (entry.index <= this.baseIndex) continue;
      const chain = this.#codec.chainFor(this.lastChain, entry.index, entry.term, entry.kind, entry.payload);
      if (chain !== entry.chain) throw new InvariantError("restored entries are chained", `index ${entry.index}`);
      this.append(entry);
    }
    this.#unsavedFrom = indexAfter(this.lastIndex);
  }

  #noteRemovedFrom(index: Index): void {
    if (index >= this.#unsavedFrom) return;
    this.#unsavedFrom = index;
    if (this.#truncateFrom === null || index < this.#truncateFrom) this.#truncateFrom = index;
  }
}
