/** A short run with something of everything that a report shows. */
import { rules } from "@holdfast/checker";
import type { HistoryEvent, Rule } from "@holdfast/checker";
import type { ReportedRun } from "../../src/report/report.js";

/** Of the machine's clock. */
const start = 50_000;

type Untimed<Event> = Event extends HistoryEvent ? Omit<Event, "at"> : never;

function at(ms: number, event: Untimed<HistoryEvent>): HistoryEvent {
  return { ...event, at: start + ms };
}

function acquire(ms: number, client: string, call: number, name: string): HistoryEvent {
  const op = { kind: "acquire", names: [name], mode: "exclusive", slots: 0, wait: true, maxHoldMs: 0 } as const;
  return at(ms, { kind: "call", client, call, op });
}

function granted(ms: number, call: number, name: string, token: number): HistoryEvent {
  const result = { kind: "acquired", grants: [{ name, token, slot: null }], session: 2, request: call } as const;
  return at(ms, { kind: "return", call, result });
}

function release(ms: number, client: string, call: number, of: number): HistoryEvent {
  return at(ms, { kind: "call", client, call, op: { kind: "release", of } });
}

/** The probe takes a lock and gives it back, faster than a picture can show. */
function probes(from: number, many: number): HistoryEvent[] {
  return Array.from({ length: many }, (_, turn) => {
    const ms = from + turn * 10;
    const call = 1_000 + from + turn;
    const taken = [acquire(ms, "prober", call, "probe"), granted(ms + 2, call, "probe", 100 + turn)];
    return [...taken, release(ms + 4, "prober", 10_000 + call, call)];
  }).flat();
}

export const sampleEvents: readonly HistoryEvent[] = [
  at(-900, { kind: "started", node: "n1", index: 0 }),
  at(-890, { kind: "started", node: "n2", index: 0 }),
  at(-880, { kind: "started", node: "n3", index: 0 }),
  at(-700, { kind: "leader", node: "n1", term: 1 }),
  at(-600, { kind: "serving", node: "n1", term: 1 }),
  at(-500, { kind: "clockRate", process: "n3", rate: 0.9 }),
  acquire(100, "w1", 1, "lock:1"),
  granted(120, 1, "lock:1", 7),
  acquire(150, "w2", 2, "lock:1"),
  ...probes(200, 4),
  at(1_000, { kind: "fault", fault: "stop w1 between its look and its write" }),
  at(1_000, { kind: "paused", process: "w1" }),
  granted(4_000, 2, "lock:1", 9),
  release(4_500, "w2", 3, 2),
  at(6_000, { kind: "resumed", process: "w1" }),
  at(6_001, { kind: "state", call: 1, state: "lost", reason: "expired", since: start + 3_900 }),
  at(6_010, { kind: "guardWrite", client: "w1", resource: "r", name: "lock:1", slot: null, token: 7, accepted: false }),
  acquire(6_500, "w2", 4, "lock:2"),
  granted(6_520, 4, "lock:2", 12),
  at(6_600, { kind: "guardWrite", client: "w2", resource: "r", name: "lock:2", slot: null, token: 12, accepted: true }),
  at(7_000, { kind: "fault", fault: "cut n1 <-> n2, n1 <-> n3" }),
  at(7_800, { kind: "state", call: 4, state: "jeopardy", reason: null, since: null }),
  at(8_000, { kind: "leader", node: "n2", term: 2 }),
  at(8_050, { kind: "deposed", node: "n1", term: 1 }),
  at(8_100, { kind: "serving", node: "n2", term: 2 }),
  at(8_200, { kind: "state", call: 4, state: "held", reason: null, since: null }),
  at(9_000, { kind: "crashed", process: "n3" }),
  at(9_500, { kind: "started", node: "n3", index: 10 }),
  at(9_600, { kind: "crashed", process: "w2" }),
  acquire(9_700, "w2.2", 5, "lock:1"),
  granted(9_800, 5, "lock:1", 15),
  release(10_400, "w2.2", 6, 5),
  at(10_900, { kind: "crashed", process: "n2" }),
  at(20_000, { kind: "fault", fault: "long after the end" }),
];

const none = Object.fromEntries(rules.map((rule) => [rule, 0])) as Record<Rule, number>;

export const sampleRun: ReportedRun = {
  scenario: "sample",
  about: 'A holder stops, then the leader is cut off & a "worker" dies <here>.',
  mode: "netns",
  seed: 17,
  nodes: ["n1", "n2", "n3"],
  workers: ["w1", "w2"],
  electionTimeoutMs: 500,
  ttlMs: 2_000,
  startedWallTime: "2026-01-02T03:04:05.678Z",
  startedAt: start,
  endedAt: start + 10_000,
  faults: [
    {
      text: "stop w1 between its look and its write",
      from: start + 1_000,
      to: start + 6_000,
      outageMs: 412.4,
      waitP99Ms: 380.5,
      boundMs: null,
      bytesPassed: null,
      elections: 0,
      termFrom: 1,
      termTo: 1,
    },
    {
      text: "cut n1 <-> n2, n1 <-> n3",
      from: start + 7_000,
      to: start + 9_900,
      outageMs: 1_100,
      waitP99Ms: 1_100,
      boundMs: 3_000,
      bytesPassed: 0,
      elections: 1,
      termFrom: 1,
      termTo: 2,
    },
    {
      text: "SIGKILL n3",
      from: start + 9_000,
      to: null,
      outageMs: Number.POSITIVE_INFINITY,
      waitP99Ms: Number.POSITIVE_INFINITY,
      boundMs: 3_000,
      bytesPassed: null,
      elections: 0,
      termFrom: 2,
      termTo: 2,
    },
  ],
  load: { operations: 13, grants: 8, releases: 6, unknown: 1, losses: 1 },
  cluster: { elections: 1, failovers: 1, termFrom: 1, termTo: 2, committed: 15 },
  store: { guardedWrites: 2, refused: 1, lostGuarded: 0, unguardedWrites: 3, lostUnguarded: 1 },
  log: {
    toldBy: "n1",
    snapshots: [
      { node: "n1", index: 9, isWhole: true },
      { node: "n2", index: 12, isWhole: false },
    ],
  },
  unavailability: { maxMs: 1_100, p99Ms: 1_100 },
  expectations: [
    { text: "stale writes refused by the guard: at least 1", found: "1", isMet: true },
    { text: "back within | 3 s", found: "no end", isMet: false },
  ],
  verdict: {
    violations: [{ rule: "hold-overlap", message: "w1 and w2 both\nhold lock:1", events: [20, 21] }],
    counts: {
      events: sampleEvents.length,
      judged: { ...none, "hold-overlap": 4, exclusion: 5, "late-deadline": 6 },
      excluded: { ...none, "late-deadline": 2 },
      found: { ...none, "hold-overlap": 1 },
      unknowns: { happened: 0, never: 0, open: 0 },
      locks: 3,
      operations: 13,
      steps: 40,
    },
  },
  isPassed: false,
};
