/** Random writes as a node makes them, and what a store must hold after each: in plain arrays, knowing nothing of the model. */
import type { Configuration, Entry, HardState, Index, LogBase, Restored, Term } from "@holdfast/raft";
import type { StoreWrite } from "@holdfast/storage";
import { entryCodec } from "@holdfast/wire";
import assert from "node:assert/strict";

const configuration: Configuration = {
  voters: [{ id: "n1", instance: "1", peer: "127.0.0.1:7201", client: "127.0.0.1:7101" }],
  outgoing: [],
  learners: [],
  removed: [],
};

export function baseOf(index: number, term: number, chain: number): LogBase {
  return { position: { index: index as Index, term: term as Term }, chain, configuration };
}

export const firstBase: LogBase = baseOf(0, 0, 0);

export const nothing: StoreWrite = {
  hardState: null,
  truncateFrom: null,
  entries: [],
  chunk: null,
  removeThrough: null,
};

export function termOf(value: number): HardState {
  return { term: value as Term, votedFor: null };
}

/** Entries that follow on `previous`, one for each payload. */
export function entriesAfter(
  previous: { readonly index: number; readonly chain: number },
  inTerm: number,
  payloads: readonly Uint8Array[],
): Entry[] {
  let { chain } = previous;
  return payloads.map((payload, at) => {
    const index = (previous.index + 1 + at) as Index;
    const term = inTerm as Term;
    chain = entryCodec.chainFor(chain, index, term, "command", payload);
    return { index, term, kind: "command", payload, chain };
  });
}

/** What a start must give back. */
export interface Expected {
  readonly hardState: HardState;
  readonly base: LogBase;
  /** Above the base. */
  readonly entries: readonly Entry[];
  /** Of the newest complete snapshot; null when there is none. */
  readonly chunks: readonly Uint8Array[] | null;
}

export const formed: Expected = { hardState: termOf(0), base: firstBase, entries: [], chunks: null };

/** For comparing. */
export function textOf({ hardState, base, entries }: Restored, chunks: readonly Uint8Array[] | null): string {
  const bytes = (some: Uint8Array): string => Buffer.from(some).toString("hex");
  const { position, chain, configuration: members } = base;
  return JSON.stringify({
    hardState: [hardState.term, hardState.votedFor],
    base: [position.index, position.term, chain, members],
    entries: entries.map((entry) => [entry.index, entry.term, entry.kind, entry.chain, bytes(entry.payload)]),
    chunks: chunks?.map(bytes) ?? null,
  });
}

export interface Chance {
  integer(below: number): number;
}

interface Sending {
  readonly base: LogBase;
  readonly chunks: readonly Uint8Array[];
  sent: number;
}

/** Draws one write after another. Unfinished snapshots are forgotten by a restart. */
export class Writer {
  state: Expected = formed;
  private readonly random: Chance;
  private own: Sending | null = null;
  private received: Sending | null = null;

  constructor(random: Chance) {
    this.random = random;
  }

  /** A process has found this on its disk. */
  restart(state: Expected): void {
    this.state = state;
    this.own = null;
    this.received = null;
  }

  next(): StoreWrite {
    const kind = this.random.integer(16);
    if (kind < 5) return this.appendMore();
    if (kind < 7) return this.vote();
    if (kind < 9) return this.replaceEnd();
    if (kind < 12) return this.sendOwn();
    if (kind < 14) return this.receive();
    return this.removeCovered();
  }

  private bytes(most: number): Uint8Array {
    return new Uint8Array(this.random.integer(most + 1)).fill(this.random.integer(256));
  }

  private draw(howMany: number, most: number): Uint8Array[] {
    return Array.from({ length: 1 + this.random.integer(howMany) }, () => this.bytes(most));
  }

  private get end(): { readonly index: number; readonly term: number; readonly chain: number } {
    const { entries, base } = this.state;
    return entries.at(-1) ?? { ...base.position, chain: base.chain };
  }

  private payloads(): Uint8Array[] {
    // Now and then some that cross the blocks of LevelDB's log.
    return this.random.integer(12) === 0 ? this.draw(3, 40_000) : this.draw(4, 80);
  }

  private appendMore(): StoreWrite {
    const { hardState } = this.state;
    const entries = entriesAfter(this.end, hardState.term, this.payloads());
    this.state = { ...this.state, entries: [...this.state.entries, ...entries] };
    return { ...nothing, entries };
  }

  private raiseTerm(): HardState {
    const term = (this.state.hardState.term + 1 + this.random.integer(2)) as Term;
    return { term, votedFor: [null, "n1", "n2"][this.random.integer(3)] ?? null };
  }

  private vote(): StoreWrite {
    const { hardState: known } = this.state;
    const keepsTerm = known.votedFor === null && this.random.integer(2) === 0;
    const hardState = keepsTerm ? { ...known, votedFor: "n3" } : this.raiseTerm();
    this.state = { ...this.state, hardState };
    return { ...nothing, hardState };
  }

  private replaceEnd(): StoreWrite {
    const { base, entries: before } = this.state;
    const hardState = this.raiseTerm();
    const cut = this.random.integer(Math.min(before.length, 9) + 1);
    const kept = before.slice(0, before.length - cut);
    // The base may be cut at too: what is covered stays.
    const truncateFrom = (base.position.index +
      kept.length +
      1 -
      (kept.length === 0 ? this.random.integer(2) : 0)) as Index;
    this.state = { ...this.state, hardState, entries: kept };
    // A log that is cut below an own snapshot under way takes its entry along.
    if (this.own !== null && this.own.base.position.index > this.end.index) this.own = null;
    const entries = this.random.integer(4) === 0 ? [] : entriesAfter(this.end, hardState.term, this.payloads());
    this.state = { ...this.state, entries: [...kept, ...entries] };
    return { ...nothing, hardState, truncateFrom, entries };
  }

  private sendOwn(): StoreWrite {
    const { entries } = this.state;
    const entry = entries[this.random.integer(entries.length)];
    if (this.own === null || !this.isOwnHeld(this.own.base)) {
      if (entry === undefined) return this.appendMore();
      this.own = { base: baseOf(entry.index, entry.term, entry.chain), chunks: this.draw(3, 200), sent: 0 };
    }
    const { own } = this;
    const chunk = this.take(own, "own");
    if (!chunk.done) return { ...nothing, chunk };
    this.own = null;
    this.install(own);
    return { ...nothing, chunk };
  }

  private isOwnHeld({ position, chain }: LogBase): boolean {
    return this.state.entries.some((entry) => entry.index === position.index && entry.chain === chain);
  }

  private receive(): StoreWrite {
    if (this.received === null || this.random.integer(6) === 0) {
      const base = this.drawReceived();
      this.received = { base, chunks: this.draw(3, 200), sent: 0 };
    }
    const { received } = this;
    const chunk = this.take(received, "received");
    if (!chunk.done) return { ...nothing, chunk };
    this.received = null;
    // It was begun before the log or another snapshot went past it.
    if (received.base.position.index <= this.state.base.position.index) return { ...nothing, chunk };
    const isBelowTerm = this.state.hardState.term < received.base.position.term;
    const hardState = isBelowTerm ? { term: received.base.position.term, votedFor: null } : null;
    if (hardState !== null) this.state = { ...this.state, hardState };
    this.install(received);
    return { ...nothing, hardState, chunk };
  }

  private drawReceived(): LogBase {
    const { base, entries, hardState, chunks } = this.state;
    // The newest snapshot once more, which changes nothing.
    if (chunks !== null && this.random.integer(6) === 0) return base;
    const own = entries[this.random.integer(entries.length)];
    if (own !== undefined && this.random.integer(3) === 0) return baseOf(own.index, own.term, own.chain);
    const index = base.position.index + 1 + this.random.integer(entries.length + 5);
    return baseOf(index, hardState.term, this.random.integer(2 ** 32));
  }

  private take(sending: Sending, origin: "own" | "received"): NonNullable<StoreWrite["chunk"]> {
    const chunk = sending.sent;
    sending.sent += 1;
    const bytes = sending.chunks[chunk] ?? new Uint8Array(0);
    return { base: sending.base, chunk, bytes, done: sending.sent === sending.chunks.length, origin };
  }

  /** The core's rule: the log goes on behind the base if it has the base's position with an equal chain value. */
  private install({ base, chunks }: Sending): void {
    const { index } = base.position;
    const { entries } = this.state;
    const same = entries.find((entry) => entry.index === index);
    const isHeld = same !== undefined && same.term === base.position.term && same.chain === base.chain;
    this.state = { ...this.state, base, chunks, entries: isHeld ? entries.filter((entry) => entry.index > index) : [] };
  }

  private removeCovered(): StoreWrite {
    const { base, chunks } = this.state;
    if (chunks === null) return this.appendMore();
    return { ...nothing, removeThrough: Math.max(0, base.position.index - this.random.integer(3)) as Index };
  }
}

/** Says what it was told to say: the model is led to the outcome that the real disk had, which it must allow. */
export class ScriptedChance implements Chance {
  private readonly draws: number[] = [];

  expect(...draws: readonly number[]): void {
    this.assertDone();
    this.draws.push(...draws);
  }

  integer(below: number): number {
    const draw = this.draws.shift();
    assert(draw !== undefined && draw < below, `${draw} was to be drawn, below ${below}`);
    return draw;
  }

  assertDone(): void {
    assert.equal(this.draws.length, 0, "all expected draws were made");
  }
}
