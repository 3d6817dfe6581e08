import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { InvariantError } from "../src/index.js";
import type { Configuration, Entry, Index, Term } from "../src/index.js";
import { Log } from "../src/log.js";
import { configurationOf, testCodec } from "./support/codec.js";
import { baseOf, entriesOf, entryOf, firstBase } from "./support/solo.js";

type Action =
  | { readonly kind: "append"; readonly terms: number; readonly isConfiguration: boolean }
  | { readonly kind: "truncate" | "compact" | "reset"; readonly at: number }
  | { readonly kind: "take" };

const actions = fc.array(
  fc.oneof(
    {
      weight: 5,
      arbitrary: fc.record({ kind: fc.constant("append" as const), terms: fc.nat(2), isConfiguration: fc.boolean() }),
    },
    {
      weight: 2,
      arbitrary: fc.record({ kind: fc.constantFrom("truncate" as const, "compact" as const), at: fc.nat(100) }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("reset" as const), at: fc.integer({ min: 1, max: 5 }) }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant("take" as const) }) },
  ),
  { maxLength: 60 },
);

/** The log as plain arrays, and a disk that follows what the log says is unsaved. */
class Model {
  base = firstBase;
  entries: Entry[] = [];
  disk: Entry[] = [];
  committed = 0;

  get lastIndex(): number {
    return this.base.position.index + this.entries.length;
  }

  configurationAt(index: number): Configuration {
    const change = this.entries.findLast((entry) => entry.kind === "configuration" && entry.index <= index);
    return change === undefined ? this.base.configuration : testCodec.decodeConfiguration(change.payload);
  }
}

function act(log: Log, model: Model, action: Action, step: number): void {
  const { base } = model;
  if (action.kind === "append") {
    const term = log.lastTerm + action.terms;
    const payload = testCodec.encodeConfiguration(configurationOf([`v${step}`]));
    const index = model.lastIndex + 1;
    const entry = action.isConfiguration
      ? entryOf(index, term, log.lastChain, "configuration", payload)
      : entryOf(index, term, log.lastChain);
    log.append(entry);
    model.entries.push(entry);
  } else if (action.kind === "truncate") {
    const from = model.committed + 1 + (action.at % (model.lastIndex - model.committed + 1));
    if (from <= base.position.index) return;
    log.truncateFrom(from as Index);
    model.entries = model.entries.filter((entry) => entry.index < from);
  } else if (action.kind === "compact") {
    // Only what is committed, hence saved, is compacted.
    take(log, model);
    const through = base.position.index + (action.at % (model.entries.length + 1));
    model.committed = Math.max(model.committed, through);
    model.base = log.baseAt(through as Index) ?? base;
    log.compactThrough(through as Index);
    model.entries = model.entries.filter((entry) => entry.index > through);
  } else if (action.kind === "reset") {
    model.base = baseOf(model.lastIndex + action.at, log.lastTerm + 1, step, configurationOf([`r${step}`]));
    log.resetTo(model.base, model.committed as Index);
    model.committed = model.base.position.index;
    model.entries = [];
    // The snapshot that comes with the same batch covers what stays below it.
    take(log, model);
    model.disk = [];
  } else {
    take(log, model);
  }
}

function take(log: Log, model: Model): void {
  const { truncateFrom, entries } = log.takeUnsaved();
  if (truncateFrom !== null) model.disk = model.disk.filter((entry) => entry.index < truncateFrom);
  model.disk.push(...entries);
  assert.equal(log.hasUnsaved, false);
}

function check(log: Log, model: Model): void {
  const { index: first } = model.base.position;
  assert.equal(log.lastIndex, model.lastIndex);
  assert.deepEqual(log.base, model.base);
  assert.equal(log.termAt((first - 1) as Index), null);
  assert.equal(log.termAt((log.lastIndex + 1) as Index), null);
  assert.deepEqual(log.baseAt(first), model.base);
  for (const entry of model.entries) {
    assert.equal(log.entryAt(entry.index), entry);
    assert.equal(log.termAt(entry.index), entry.term);
    assert.equal(log.chainAt(entry.index), entry.chain);
    assert.deepEqual(log.baseAt(entry.index)?.configuration, model.configurationAt(entry.index));
  }
  assert.deepEqual(log.configuration, model.configurationAt(log.lastIndex));
  assert.deepEqual(log.last, { index: log.lastIndex, term: log.lastTerm });
}

test("a log behaves like a list, and what it gives to the disk makes the disk equal to it", () => {
  fc.assert(
    fc.property(actions, (list) => {
      const log = new Log(testCodec, firstBase);
      const model = new Model();
      list.forEach((action, step) => {
        act(log, model, action, step);
        check(log, model);
      });
      take(log, model);
      // The disk keeps what is compacted: storage removes it by itself.
      const disk = model.disk.filter((entry) => entry.index > model.base.position.index);
      assert.deepEqual(disk, model.entries);
    }),
    { numRuns: 500 },
  );
});

test("lastIndexWithin finds the last entry of at most a term, like a walk from the end", () => {
  const terms = fc
    .array(fc.integer({ min: 1, max: 6 }), { maxLength: 30 })
    .map((list) => list.toSorted((a, b) => a - b));
  fc.assert(
    fc.property(terms, fc.nat(35), fc.nat(7), fc.nat(3), (list, index, term, baseTerm) => {
      const log = new Log(testCodec, baseOf(5, Math.min(baseTerm, list[0] ?? baseTerm), 1));
      list.forEach((each, at) => log.append(entryOf(6 + at, each, log.lastChain)));
      let naive: number | null = Math.min(index, log.lastIndex);
      while (naive >= 5 && (log.termAt(naive as Index) ?? 0) > term) naive -= 1;
      if (naive < 5) naive = null;
      assert.equal(log.lastIndexWithin(index as Index, term as Term), naive);
    }),
    { numRuns: 500 },
  );
});

test("a slice keeps to its limits, but has at least one entry", () => {
  const log = new Log(testCodec, firstBase);
  for (const entry of entriesOf("1/1 2/1 3/1 4/1 5/1")) log.append(entry);
  const indexes = (from: number, through: number, bytesMax: number, entriesMax: number): number[] =>
    log.slice(from as Index, through as Index, bytesMax, entriesMax).map((entry) => entry.index);
  assert.deepEqual(indexes(2, 9, 1_000, 100), [2, 3, 4, 5]);
  assert.deepEqual(indexes(2, 4, 1_000, 100), [2, 3, 4]);
  assert.deepEqual(indexes(2, 9, 1_000, 2), [2, 3]);
  assert.deepEqual(indexes(2, 9, 84, 100), [2, 3], "two entries of 42 bytes");
  assert.deepEqual(indexes(2, 9, 83, 100), [2]);
  assert.deepEqual(indexes(2, 9, 1, 100), [2]);
  assert.deepEqual(indexes(6, 9, 1_000, 100), []);
});

test("a gap, a falling term and a truncation behind the base are broken invariants", () => {
  const log = new Log(testCodec, baseOf(5, 3, 1));
  assert.throws(() => log.append(entryOf(7, 3, 1)), InvariantError);
  assert.throws(() => log.append(entryOf(6, 2, 1)), InvariantError);
  assert.throws(() => log.truncateFrom(5 as Index), InvariantError);
  log.append(entryOf(6, 3, 1));
  assert.throws(() => log.compactThrough(6 as Index), InvariantError, "an entry that is not saved");
});

test("an entry that can't be decoded leaves the log as it was", () => {
  const log = new Log(testCodec, firstBase);
  assert.throws(() => log.append(entryOf(1, 1, firstBase.chain, "configuration", new Uint8Array([1]))));
  assert.equal(log.lastIndex, 0);
  assert.equal(log.configuration, firstBase.configuration);
});
