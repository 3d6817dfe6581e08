import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { HistoryEvent } from "@holdfast/checker";
import { listeningSessions, owedAnswers } from "../src/run/unanswered.js";

type Keepalive = HistoryEvent & { readonly kind: "keepaliveReceived" | "keepaliveAcknowledged" };

const session = 7 as Keepalive["session"];

function read(number: number, at: number, more: Partial<Keepalive> = {}): HistoryEvent {
  return { kind: "keepaliveReceived", node: "n1", term: 2, session, number, at, ...more };
}

function acknowledged(number: number, at: number): HistoryEvent {
  return { kind: "keepaliveAcknowledged", node: "n1", term: 2, session, number, at };
}

/** By n1 in term 2, from 100 ms to 200 ms. */
function owed(...events: readonly HistoryEvent[]): number[] {
  return [...owedAnswers(events, { node: "n1", term: 2, fromMs: 100, untilMs: 200 }).values()].map(
    ({ number }) => number,
  );
}

describe("keepalives without an answer", () => {
  it("are those that neither they nor later ones were acknowledged", () => {
    assert.deepEqual(owed(read(3, 110)), [3]);
    assert.deepEqual(owed(acknowledged(2, 90), read(3, 110)), [3]);
    assert.deepEqual(owed(read(3, 110), acknowledged(3, 120)), []);
    assert.deepEqual(owed(read(3, 110), read(4, 210), acknowledged(4, 220)), []);
  });

  it("are none that a connection given up brings when a later one has its answer", () => {
    assert.deepEqual(owed(read(7, 90), acknowledged(7, 95), read(2, 110)), []);
    assert.deepEqual(owed(read(7, 110), acknowledged(7, 120), read(1, 130), read(2, 130)), []);
  });

  it("are not hidden by older ones that come after them", () => {
    assert.deepEqual(owed(acknowledged(2, 90), read(7, 110), read(1, 130)), [7]);
  });

  it("are the leader's own, of its term and of the time that is asked about", () => {
    assert.deepEqual(owed(read(3, 90), read(4, 210)), []);
    assert.deepEqual(owed(read(3, 110, { node: "n2" }), read(4, 110, { term: 1 })), []);
  });
});

describe("whoever hears an answer", () => {
  const opened = (client: string, of: number): HistoryEvent => {
    return { kind: "sessionOpened", client, session: of, key: `key of ${of}`, ttlMs: 2_000, at: of };
  };
  const close = (client: string, at: number): HistoryEvent => ({
    kind: "call",
    client,
    call: 1,
    op: { kind: "close" },
    at,
  });

  it("lives, and has not closed its library since", () => {
    const events = [opened("c1", 1), opened("c2", 2), opened("c3", 3), close("c2", 4), opened("c2", 5)];
    assert.deepEqual(listeningSessions(events, new Set(["c1", "c2"])), new Set([1, 5]));
  });
});
