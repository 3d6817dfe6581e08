import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { HistoryEvent } from "@holdfast/checker";
import { timelineOf, windowOf } from "../src/timeline.js";

type Shown = Parameters<typeof timelineOf>[0];

/** So many lines at 0, 10, 20 ms ..., and events at 5, 15, 25 ms ... */
function shown(lines: number, events: number, more: Partial<Shown> = {}): Shown {
  return {
    lines: Array.from({ length: lines }, (_, at) => ({ atMs: 10 * at, process: "n1", text: `line ${at}` })),
    history: {
      version: 1,
      origin: "a test",
      nodes: ["n1"],
      electionTimeoutMs: 500,
      firstIndex: 1,
      events: Array.from({ length: events }, (_, at): HistoryEvent => {
        return { kind: "fault", fault: `fault ${at}`, at: 10 * at + 5 };
      }),
    },
    problems: [],
    verdict: null,
    ...more,
  };
}

function violated(...violations: readonly { rule: string; events: readonly number[] }[]): Partial<Shown> {
  const told = violations.map((each) => ({ ...each, message: "broken" }));
  return { problems: told, verdict: { violations: told } } as unknown as Partial<Shown>;
}

describe("the timeline", () => {
  it("marks events that a violation names, and shows those that are else left out", () => {
    const { lines, firstMarked } = timelineOf(shown(4, 4, violated({ rule: "fifo", events: [1, 2] })));
    assert.deepEqual(
      lines.map((line) => line.trim()),
      [
        "0.00 n1     line 0",
        "10.00 n1     line 1",
        '15.00        {"kind":"fault","fault":"fault 1"}   <-- fifo',
        "20.00 n1     line 2",
        '25.00        {"kind":"fault","fault":"fault 2"}   <-- fifo',
        "30.00 n1     line 3",
      ],
    );
    assert.equal(firstMarked, 2);
  });

  it("marks the last line with a rule that names no event", () => {
    const thrown = { problems: [{ rule: "log-matching", message: "broken" }] };
    const { lines, firstMarked } = timelineOf(shown(3, 0, thrown));
    assert.match(lines[2] ?? "", /line 2 {3}<-- log-matching$/);
    assert.equal(firstMarked, 2);
    const both = violated({ rule: "convergence", events: [] }, { rule: "guard", events: [0] });
    const marked = timelineOf(shown(3, 1, both)).lines.filter((line) => line.includes("<--"));
    assert.equal(marked.length, 2);
    assert.match(marked[0] ?? "", /<-- guard$/);
    assert.match(marked[1] ?? "", /<-- convergence$/);
  });

  it("names each rule of an event once", () => {
    const events = [0];
    const thrice = violated({ rule: "fifo", events }, { rule: "guard", events }, { rule: "fifo", events });
    assert.match(timelineOf(shown(0, 1, thrice)).lines[0] ?? "", /<-- fifo, guard$/);
    assert.deepEqual(timelineOf(shown(0, 0, violated({ rule: "fifo", events: [] }))), { lines: [], firstMarked: null });
  });
});

describe("what is shown of the timeline", () => {
  const lines = Array.from({ length: 100 }, (_, at) => `line ${at + 1}`);

  it("is all of it when it is short", () => {
    assert.deepEqual(windowOf({ lines, firstMarked: 3 }, 100), lines);
  });

  it("is its end when nothing is marked, and says what is left out", () => {
    const shownLines = windowOf({ lines, firstMarked: null }, 10);
    assert.deepEqual(shownLines, [...lines.slice(90), "lines 91 to 100 of 100; --lines N for more"]);
  });

  it("is around the first marked line", () => {
    const rows = [
      { firstMarked: 49, from: 43, to: 52 },
      { firstMarked: 0, from: 1, to: 10 },
      { firstMarked: 6, from: 1, to: 10 },
      { firstMarked: 99, from: 91, to: 100 },
    ];
    for (const { firstMarked, from, to } of rows) {
      const shownLines = windowOf({ lines, firstMarked }, 10);
      assert.deepEqual(shownLines, [...lines.slice(from - 1, to), `lines ${from} to ${to} of 100; --lines N for more`]);
      assert.ok(shownLines.includes(lines[firstMarked] ?? ""));
    }
    for (const at of lines.keys())
      assert.ok(windowOf({ lines, firstMarked: at }, 1).includes(lines[at] ?? ""), `line ${at}`);
  });
});
