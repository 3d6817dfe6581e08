import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { HistoryEvent } from "@holdfast/checker";
import { boundMs, faultRecords, ownElections, probeGrants } from "../../src/run/measure.js";
import { Noise } from "../../src/run/noise.js";
import type { DoneStep } from "../../src/run/schedule.js";

const noise = new Noise();
noise.stop();
const op = { kind: "acquire", names: ["probe"], mode: "exclusive", slots: 0, wait: true, maxHoldMs: 0 } as const;

function grantsAt(...times: readonly number[]): HistoryEvent[] {
  return times.flatMap((at, call): HistoryEvent[] => [
    { at: at - 1, kind: "call", client: "prober", call, op },
    { at, kind: "return", call, result: { kind: "acquired", grants: [], session: 1, request: call } },
  ]);
}

function step(from: number, to: number | null, more: Partial<DoneStep["step"]> = {}): DoneStep {
  const action = { kind: "kill", who: ["leader"], damage: null } as const;
  const read = { at: 0, forSeconds: 1, action, backWithin: 2, backFrom: "begin", ...more } as const;
  return { step: read, text: "kill", from, to, bytesPassed: null };
}

function outagesOf(steps: readonly DoneStep[], grants: readonly number[]): readonly number[] {
  const events = grantsAt(...grants);
  const context = { events, grants: probeGrants(events, "prober"), electionTimeoutMs: 100, endedAt: 1_000, noise };
  return faultRecords(steps, context).map(({ outageMs }) => outageMs);
}

describe("the outage of a fault", () => {
  it("is the longest time without a grant after it began", () => {
    assert.deepEqual(outagesOf([step(100, 500)], [50, 90, 400, 450, 990, 1_010]), [540]);
  });

  it("counts from the end where the fault takes the majority away", () => {
    assert.deepEqual(outagesOf([step(100, 500, { backFrom: "end" })], [90, 550, 700, 800, 900, 1_010]), [150]);
  });

  it("belongs to the newest fault", () => {
    assert.deepEqual(outagesOf([step(100, 300), step(500, 600)], [90, 350, 480, 900, 1_010]), [250, 400]);
  });

  it("is told beside what all but the longest of many waits stay within", () => {
    const grants = [...Array.from({ length: 120 }, (_, at) => 101 + at), 900, 1_010];
    const events = grantsAt(...grants);
    const context = { events, grants, electionTimeoutMs: 100, endedAt: 1_000, noise };
    const [record] = faultRecords([step(100, 500)], context);
    assert.equal(record?.outageMs, 680);
    assert.equal(record?.waitP99Ms, 110);
  });

  it("is endless when no grant comes any more", () => {
    assert.deepEqual(outagesOf([step(100, 500)], [50, 90, 400]), [Number.POSITIVE_INFINITY]);
  });

  it("is counted by the prober's grants alone", () => {
    const [call, granted] = grantsAt(20);
    const events = [{ ...call, client: "w1" } as HistoryEvent, granted as HistoryEvent];
    assert.deepEqual(probeGrants(events, "prober"), []);
    assert.deepEqual(probeGrants(events, "w1"), [20]);
  });
});

it("a bound is stated in election timeouts, with a margin", () => {
  assert.equal(boundMs(4, 500) - boundMs(2, 500), 1_500);
  assert.ok(boundMs(0, 500) > 0);
});

it("an election is the service's own unless the machine made somebody wait shortly before", () => {
  const waits = new Noise();
  waits.stop();
  waits.note(300);
  const now = Number(process.hrtime.bigint()) / 1e6;
  const elected = (at: number): HistoryEvent => ({ at, kind: "leader", node: "n1", term: 1 });
  const own = (at: number, known: Noise): number =>
    ownElections([elected(at)], 0, Number.POSITIVE_INFINITY, {
      events: [],
      grants: [],
      electionTimeoutMs: 100,
      endedAt: now,
      noise: known,
    });
  assert.equal(own(now + 400, waits), 0);
  assert.equal(own(now + 5_000, waits), 1);
  assert.equal(own(now + 400, noise), 1);
});
