import assert from "node:assert/strict";
import { it } from "node:test";
import { check } from "@holdfast/checker";
import type { HistoryEvent } from "@holdfast/checker";
import { acknowledgements } from "../../src/history/acknowledgements.js";

const elections: readonly HistoryEvent[] = [
  { at: 100, kind: "leader", node: "n1", term: 1 },
  { at: 5_000, kind: "leader", node: "n2", term: 2 },
  { at: 5_050, kind: "serving", node: "n2", term: 2 },
  { at: 20_000, kind: "leader", node: "n1", term: 3 },
];

function termAt(at: number, node: string): number | null {
  const [event] = acknowledgements([{ at, kind: "acknowledgedBy", node, session: 7, number: 1 }], elections);
  return event?.kind === "keepaliveAcknowledged" ? event.term : null;
}

it("an acknowledgement is of the newest term that its node may have led in by then", () => {
  assert.equal(termAt(200, "n1"), 1);
  assert.equal(termAt(17_000, "n1"), 1);
  // Its log may be read a moment later.
  assert.equal(termAt(19_000, "n1"), 3);
  assert.equal(termAt(200, "n2"), null);
  assert.equal(termAt(9_000, "n3"), null);
});

it("a deposed leader that goes on renewing is found", () => {
  const verdictOf = (node: string): readonly string[] => {
    const words = acknowledgements([{ at: 6_100, kind: "acknowledgedBy", node, session: 7, number: 1 }], elections);
    const sent: HistoryEvent = { at: 6_000, kind: "keepaliveSent", client: "w1", session: 7, number: 1 };
    const events = [...elections, sent, ...words].sort((one, other) => one.at - other.at);
    const history = {
      version: 1,
      origin: "test",
      nodes: ["n1", "n2", "n3"],
      electionTimeoutMs: 500,
      firstIndex: 1,
    } as const;
    const { violations, counts } = check({ ...history, events });
    assert.equal(counts.judged["split-brain-keepalive"], 1);
    return violations.map(({ rule }) => rule);
  };
  assert.deepEqual(verdictOf("n1"), ["split-brain-keepalive"]);
  assert.deepEqual(verdictOf("n2"), []);
});
