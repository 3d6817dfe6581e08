/** Random writes, closings and openings, against a model in plain arrays that knows nothing of rows. */
import type { Entry, HardState, Index, LogBase } from "@holdfast/raft";
import fc from "fast-check";
import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { test } from "node:test";
import type { DataDirectory, Store, StoreWrite } from "../src/index.js";
import { baseAt, endOf, entriesAfter, firstBase, formNew, index, nothing, openFormed, plain, term } from "./fixture.js";

type Step =
  | { readonly kind: "append"; readonly sizes: number[]; readonly termRise: number }
  | { readonly kind: "replace"; readonly back: number; readonly sizes: number[] }
  | { readonly kind: "vote"; readonly termRise: number; readonly votedFor: string | null }
  | { readonly kind: "own"; readonly back: number; readonly sizes: number[]; readonly remove: number | null }
  | {
      readonly kind: "received";
      readonly at: number;
      readonly sizes: number[];
      readonly isOurs: boolean;
      readonly isLeftUnfinished: boolean;
    }
  | { readonly kind: "reopen" };

const sizes = fc.array(fc.oneof(fc.integer({ min: 0, max: 60 }), fc.integer({ min: 0, max: 40_000 })), {
  minLength: 1,
  maxLength: 6,
});

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant("append" as const), sizes, termRise: fc.integer({ min: 0, max: 1 }) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant("replace" as const), back: fc.integer({ min: 0, max: 12 }), sizes }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("vote" as const),
      termRise: fc.integer({ min: 1, max: 3 }),
      votedFor: fc.constantFrom(null, "n1", "n2"),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("own" as const),
      back: fc.integer({ min: 0, max: 10 }),
      sizes,
      remove: fc.option(fc.integer({ min: 0, max: 8 })),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("received" as const),
      at: fc.integer({ min: -8, max: 8 }),
      sizes,
      isOurs: fc.boolean(),
      isLeftUnfinished: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.constant<Step>({ kind: "reopen" }) },
);

class Model {
  hardState: HardState = { term: term(0), votedFor: null };
  base: LogBase = firstBase;
  /** Above the base. */
  entries: Entry[] = [];
  snapshot: { readonly index: Index; readonly chunks: readonly Uint8Array[] } | null = null;

  get end(): { index: number; term: number; chain: number } {
    return endOf(this.entries, this.base);
  }

  upTo(last: number): Entry[] {
    return this.entries.filter((entry) => entry.index <= last);
  }

  /** The core's rule: the log goes on behind the base if it has the base's position with an equal chain value. */
  install(base: LogBase, chunks: readonly Uint8Array[]): void {
    const { position, chain } = base;
    const own = this.entries.find((entry) => entry.index === position.index);
    const isEqual = own !== undefined && own.term === position.term && own.chain === chain;
    this.entries = isEqual ? this.entries.filter((entry) => entry.index > position.index) : [];
    this.base = base;
    this.snapshot = { index: position.index, chunks };
  }
}

class Run {
  readonly model = new Model();
  readonly #directory: string;
  #opened: DataDirectory;
  #store: Store;
  #fill = 0;

  constructor(directory: string, opened: DataDirectory, store: Store) {
    this.#directory = directory;
    this.#opened = opened;
    this.#store = store;
  }

  #bytes(lengths: readonly number[]): Uint8Array[] {
    return lengths.map((length) => new Uint8Array(length).fill(++this.#fill));
  }

  async #write(write: Partial<StoreWrite>): Promise<void> {
    await this.#store.write({ ...nothing, ...write });
  }

  async #snapshot(base: LogBase, chunks: readonly Uint8Array[], origin: "own" | "received"): Promise<void> {
    for (const [chunk, bytes] of chunks.entries()) {
      await this.#write({ chunk: { base, chunk, bytes, done: chunk === chunks.length - 1, origin } });
    }
  }

  async do(step: Step): Promise<void> {
    const { model } = this;
    switch (step.kind) {
      case "append": {
        const hardState = step.termRise > 0 ? { term: term(model.hardState.term + 1), votedFor: null } : null;
        model.hardState = hardState ?? model.hardState;
        const entries = entriesAfter(model.end, model.hardState.term, this.#bytes(step.sizes));
        await this.#write({ hardState, entries });
        model.entries.push(...entries);
        return;
      }
      case "replace": {
        const keptTo = Math.max(model.base.position.index, model.end.index - step.back);
        const hardState = { term: term(model.hardState.term + 1), votedFor: "n3" };
        model.entries = model.upTo(keptTo);
        model.hardState = hardState;
        const entries = entriesAfter(model.end, hardState.term, this.#bytes(step.sizes));
        await this.#write({ hardState, truncateFrom: index(keptTo + 1), entries });
        model.entries.push(...entries);
        return;
      }
      case "vote":
        model.hardState = { term: term(model.hardState.term + step.termRise), votedFor: step.votedFor };
        await this.#write({ hardState: model.hardState });
        return;
      case "own": {
        const entry = model.entries.at(-1 - step.back);
        if (entry === undefined) return;
        const chunks = this.#bytes(step.sizes);
        const base = baseAt(entry);
        await this.#snapshot(base, chunks, "own");
        model.install(base, chunks);
        if (step.remove !== null) await this.#write({ removeThrough: index(Math.max(0, entry.index - step.remove)) });
        return;
      }
      case "received":
        await this.#receive(step);
        return;
      case "reopen":
        await this.reopen();
    }
  }

  async #receive({ at, sizes: lengths, isOurs, isLeftUnfinished }: Step & { kind: "received" }): Promise<void> {
    const { model } = this;
    const last = model.end.index + at;
    if (last <= model.base.position.index) return;
    const own = model.entries.find((entry) => entry.index === last);
    const base =
      isOurs && own !== undefined
        ? baseAt(own)
        : { ...firstBase, position: { index: index(last), term: model.hardState.term }, chain: ++this.#fill };
    const chunks = this.#bytes(lengths);
    if (isLeftUnfinished) {
      for (const [chunk, bytes] of chunks.entries())
        await this.#write({ chunk: { base, chunk, bytes, done: false, origin: "received" } });
      return;
    }
    await this.#snapshot(base, chunks, "received");
    model.install(base, chunks);
  }

  async reopen(): Promise<void> {
    await this.#opened.close();
    const { opened, store, restored } = await openFormed(this.#directory);
    this.#opened = opened;
    this.#store = store;
    const { hardState, base, entries } = this.model;
    assert.deepEqual(plain(restored), plain({ hardState, base, entries }));
    await this.checkSnapshot();
  }

  async checkSnapshot(): Promise<void> {
    const { snapshot } = this.model;
    assert.equal(this.#store.snapshot?.base.position.index, snapshot?.index);
    for (const [chunk, bytes] of (snapshot?.chunks ?? []).entries()) {
      assert.deepEqual(Uint8Array.from((await this.#store.readChunk(snapshot?.index ?? index(0), chunk)) ?? []), bytes);
    }
  }

  async end(): Promise<void> {
    await this.checkSnapshot();
    await this.reopen();
    await this.#opened.close();
    await rm(this.#directory, { recursive: true });
  }
}

test("whatever is written comes back", async () => {
  const property = fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 40 }), async (steps) => {
    const { directory, opened, store } = await formNew();
    const run = new Run(directory, opened, store);
    for (const one of steps) await run.do(one);
    await run.end();
  });
  await fc.assert(property, { numRuns: 30 });
});
