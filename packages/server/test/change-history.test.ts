/** The newest changes of a log, held against a list of all of them. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { LockChange } from "@holdfast/wire";
import fc from "fast-check";
import { ChangeHistory } from "../src/change-history.js";

function changeOf(index: number, at: number): LockChange {
  return { name: `lock ${at}`, change: "granted", token: index, slot: null };
}

/** Steps in the log, and how many changes each entry brings. */
const entries = fc.array(fc.record({ step: fc.integer({ min: 1, max: 3 }), count: fc.integer({ min: 1, max: 6 }) }), {
  maxLength: 40,
});

describe("a history of changes", () => {
  it("tells all that came after an entry, or that it doesn't know", () => {
    fc.assert(
      fc.property(entries, fc.integer({ min: 1, max: 12 }), fc.nat(130), (steps, sizeMax, from) => {
        const history = new ChangeHistory(sizeMax);
        const all: { index: number; changes: LockChange[] }[] = [];
        let index = 10;
        for (const { step, count } of steps) {
          index += step;
          const changes = Array.from({ length: count }, (_, at) => changeOf(index, at));
          all.push({ index, changes });
          history.add(index, changes);
        }
        const told = history.after(from);
        const wanted = all.filter((each) => each.index > from);
        if (told !== null) return assert.deepEqual(told, wanted);
        const size = wanted.reduce((sum, { changes }) => sum + changes.length, 0);
        // Before its first entry another life may have seen changes.
        const isBefore = all[0] === undefined || from < all[0].index - 1;
        assert.ok(isBefore || size > sizeMax, "what has room is remembered");
      }),
    );
  });

  it("keeps no more than it may", () => {
    const history = new ChangeHistory(3);
    for (let index = 1; index <= 100; index += 1) history.add(index, [changeOf(index, 1)]);
    assert.equal(history.after(96), null);
    assert.deepEqual(
      history.after(97)?.map(({ index }) => index),
      [98, 99, 100],
    );
    history.add(
      101,
      [1, 2, 3, 4].map((at) => changeOf(101, at)),
    );
    assert.equal(history.after(100), null, "an entry that doesn't fit is forgotten, and all before it");
    assert.deepEqual(history.after(101), []);
  });

  it("knows nothing of what a snapshot has brought", () => {
    const history = new ChangeHistory(10);
    assert.equal(history.after(0), null);
    history.add(5, [changeOf(5, 1)]);
    history.forget(20);
    assert.equal(history.after(19), null);
    assert.deepEqual(history.after(20), []);
    history.add(21, [changeOf(21, 1)]);
    assert.equal(history.after(20)?.length, 1);
  });
});
