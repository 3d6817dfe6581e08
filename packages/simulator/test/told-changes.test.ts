/** The rule on watches, broken by hand: found, and only then. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { WatchEvent } from "@holdfast/client";
import { ChangeBook, ToldChanges } from "../src/invariants/told-changes.js";

/** Entry 10 grants a and b, entry 12 takes a away and gives it anew, entry 15 grants c. */
function book(): ChangeBook {
  const all = new ChangeBook();
  const changed = (name: string, change: "granted" | "released", token: number) =>
    ({ kind: "changed", name, change, token, slot: null }) as const;
  all.note(10, [changed("a", "granted", 10), changed("b", "granted", 10)]);
  all.note(12, [changed("a", "released", 10), changed("a", "granted", 12)]);
  all.note(15, [changed("c", "granted", 15)]);
  return all;
}

const gap = (index: number): WatchEvent => ({ type: "gap", index });
const told = (type: "granted" | "released", name: string, token: number, index: number): WatchEvent => {
  return { type, name, token, slot: null, index };
};

function judged(events: readonly WatchEvent[], name = "", isPrefix = true): void {
  const watch = new ToldChanges(book(), name, isPrefix);
  for (const event of events) watch.judge(event);
}

function breaks(events: readonly WatchEvent[]): void {
  assert.throws(() => judged(events), { rule: "told-changes" });
}

const whole = [
  told("granted", "a", 10, 10),
  told("granted", "b", 10, 10),
  told("released", "a", 10, 12),
  told("granted", "a", 12, 12),
  told("granted", "c", 15, 15),
];

describe("what a watch is told", () => {
  it("is all that was changed since the gap, in order; of one lock what concerns it", () => {
    judged([gap(9), ...whole]);
    judged([gap(10), ...whole.slice(2)]);
    judged([gap(3), told("granted", "c", 15, 15)], "c", false);
    judged([gap(9), ...whole.slice(0, 1), gap(12), ...whole.slice(4)]);
  });

  it("has nothing missing, doubled, turned round or made up", () => {
    for (let at = 0; at < whole.length - 1; at += 1) breaks([gap(9), ...whole.slice(0, at), ...whole.slice(at + 1)]);
    breaks([gap(9), ...whole.slice(0, 1), ...whole]);
    breaks([gap(9), ...whole.slice(0, 2).reverse()]);
    breaks([gap(9), told("granted", "a", 11, 10)]);
    breaks([gap(9), told("granted", "d", 10, 10)]);
    breaks([gap(9), ...whole, told("granted", "c", 16, 16)]);
  });

  it("begins with a gap, and never goes back", () => {
    breaks(whole);
    breaks([gap(9), ...whole, gap(12)]);
    breaks([gap(12), ...whole]);
    breaks([gap(10), whole[1] as WatchEvent]);
  });
});
