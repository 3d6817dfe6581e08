import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Turns } from "../turns.js";

describe("turns of a loop", () => {
  it("are told by the longest, without waiting for a core, and without garbage collection", () => {
    const turns = new Turns();
    turns.add(0, 1, 0);
    turns.add(100, 180, 5);
    turns.add(200, 260, 0);
    turns.addPause(90, 110);
    turns.addPause(150, 170);
    // Told after its turn, as the collector's times are.
    turns.addPause(175, 200);
    assert.deepEqual(turns.longest(), { longestMs: 80, longestRunMs: 75, longestOwnMs: 60 });
  });

  it("are not shorter for a collection that waited for a core", () => {
    const turns = new Turns();
    turns.add(0, 100, 60);
    turns.addPause(10, 90);
    assert.deepEqual(turns.longest(), { longestMs: 100, longestRunMs: 40, longestOwnMs: 20 });
  });

  it("count those that are longer than a limit", () => {
    const turns = new Turns();
    for (const ms of [4, 99, 100, 101, 300]) turns.add(1_000, 1_000 + ms, 0);
    assert.equal(turns.longerThan(100), 2);
    assert.equal(turns.longerThan(500), 0);
  });

  it("are of no interest when short", () => {
    assert.deepEqual(new Turns().longest(), { longestMs: 0, longestRunMs: 0, longestOwnMs: 0 });
  });
});
