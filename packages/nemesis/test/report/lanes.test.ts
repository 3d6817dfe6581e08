import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { withoutCrowding } from "../../src/report/crowding.js";
import type { Bar, Lane } from "../../src/report/lane.js";
import { lanesOf } from "../../src/report/lanes.js";
import { sampleEvents, sampleRun } from "./sample-run.js";

const end = sampleRun.startedAt + 12_000;
const lanes = lanesOf(sampleRun, sampleEvents, end);

function laneOf(name: string): Lane {
  const lane = lanes.find((each) => each.name === name);
  assert.ok(lane, `a lane ${name}`);
  return lane;
}

/** Style, label and time after the start of the load. */
function barsOf(name: string): string[] {
  const sorted = [...laneOf(name).bars].sort((a, b) => a.from - b.from);
  return sorted.map(
    ({ style, label, from, to }) => `${style} ${label} ${from - sampleRun.startedAt}..${to - sampleRun.startedAt}`,
  );
}

function marksOf(name: string): string[] {
  return laneOf(name).marks.map(({ style, at }) => `${style} ${at - sampleRun.startedAt}`);
}

describe("lanes of a run", () => {
  it("are the nodes, the workers, and other clients", () => {
    assert.deepEqual(
      lanes.map(({ name }) => name),
      ["n1", "n2", "n3", "w1", "w2", "prober"],
    );
  });

  it("tell when a node is up, elected, serves, and ends", () => {
    assert.deepEqual(barsOf("n1"), ["up  -900..12000", "leads  -700..-600", "serves term 1 -600..8050"]);
    assert.deepEqual(barsOf("n2"), ["up  -890..10900", "leads  8000..8100", "serves term 2 8100..10900"]);
    assert.deepEqual(barsOf("n3"), ["up  -880..9000", "up  9500..12000"]);
    assert.deepEqual(marksOf("n3"), ["rate -500", "killed 9000"]);
  });

  it("tell what a worker held by its own word, whatever the cluster knew", () => {
    assert.deepEqual(barsOf("w1"), ["hold 7 120..6001", "paused  1000..6000"]);
    assert.deepEqual(marksOf("w1"), ["lost 6001", "refused 6010"]);
  });

  it("put all lives of a worker into one lane, and end its holds with its life", () => {
    assert.deepEqual(barsOf("w2"), [
      "hold 9 4000..4500",
      "hold 12 6520..7800",
      "jeopardy 12 7800..8200",
      "hold 12 8200..9600",
      "hold 15 9800..10400",
    ]);
    assert.deepEqual(marksOf("w2"), ["killed 9600"]);
  });

  it("give each lock a colour of its own", () => {
    const hues = new Map(
      lanes.flatMap(({ bars }) => bars).map(({ title, hue }) => [/lock:\d|probe/.exec(title)?.[0], hue]),
    );
    assert.deepEqual(
      [...hues].filter(([name]) => name !== undefined),
      [
        ["lock:1", 0],
        ["lock:2", 2],
        ["probe", 1],
      ],
    );
  });

  it("end with the picture", () => {
    const early = lanesOf(sampleRun, sampleEvents, sampleRun.startedAt + 500);
    assert.ok(early.every(({ bars }) => bars.every(({ to }) => to <= sampleRun.startedAt + 500)));
  });
});

describe("bars that are too short to be told apart", () => {
  const finest = 10;
  const bar = fc
    .record({ from: fc.integer({ min: 0, max: 500 }), long: fc.integer({ min: 0, max: 30 }), isHold: fc.boolean() })
    .map(({ from, long, isHold }): Bar => {
      return { style: isHold ? "hold" : "jeopardy", from, to: from + long, label: "", title: "", hue: 0 };
    });

  it("are drawn as one, and nothing else changes", () => {
    fc.assert(
      fc.property(fc.array(bar, { maxLength: 60 }), (bars) => {
        const shown = withoutCrowding(bars, finest);
        const isCovered = ({ style, from, to }: Bar): boolean =>
          shown.some((each) => each.style === style && each.from <= from && each.to >= to);
        assert.ok(bars.every(isCovered), "each bar is still there");
        const long = (all: readonly Bar[]): Bar[] => all.filter(({ from, to }) => to - from >= finest);
        assert.ok(
          long(bars).every((each) => shown.includes(each)),
          "long ones stay as they are",
        );
        for (const each of shown) {
          // No gap that a picture could show has been closed.
          const inside = bars.filter(
            ({ style, from, to }) => style === each.style && from >= each.from && to <= each.to,
          );
          const sorted = inside.sort((a, b) => a.from - b.from);
          let to = each.from;
          for (const part of sorted) {
            assert.ok(part.from - to < finest || to === each.from, "no wide gap inside");
            to = Math.max(to, part.to);
          }
        }
      }),
    );
  });

  it("are few in the end", () => {
    const crowd = Array.from({ length: 10_000 }, (_, at): Bar => {
      return { style: "hold", from: at * 3, to: at * 3 + 2, label: `${at}`, title: `${at}`, hue: 0 };
    });
    assert.deepEqual(withoutCrowding(crowd, finest), [
      { ...crowd[0], to: 29_999, label: "", title: "0, and 9999 more until here" },
    ]);
  });
});
