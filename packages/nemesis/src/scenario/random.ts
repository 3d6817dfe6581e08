/** Scenarios drawn from a seed: the same seed gives the same schedule. What happens then is the machine's. */
import type { Action, Role, Scenario, Step } from "./scenario.js";

const loadSeconds = 60;
/** Between two faults: long enough to see whether the service comes back. */
const calmSeconds = { min: 2, max: 6 };
const faultSeconds = { min: 1, max: 9 };
/** A pause has to outlast the lease. */
const pauseSeconds = 7;
/** Nobody is hurt before a write that a pause has held up has arrived: what was cut off for so long TCP tries again after as long. */
const pauseCalmSeconds = 8;
/** In so many runs nodes take a snapshot every few seconds, and whoever was away for longer gets one. */
const snapshotShare = 0.5;

export function drawScenario(seed: number, nodes: 3 | 5): Scenario {
  const random = new Random(seed);
  const schedule: Step[] = [];
  for (let at = random.between(1, 3); ; ) {
    const action = drawAction(random, nodes);
    const isOnce = action.kind === "reset" || action.kind === "roll";
    const isPause = action.kind === "pause";
    const seconds = isPause ? pauseSeconds : random.between(faultSeconds.min, faultSeconds.max);
    if (at + seconds > loadSeconds - (isPause ? pauseCalmSeconds : calmSeconds.max)) break;
    schedule.push({ at, forSeconds: isOnce ? null : seconds, action, backWithin: null, backFrom: "begin" });
    at += seconds + (isPause ? pauseCalmSeconds : random.between(calmSeconds.min, calmSeconds.max));
  }
  // A pause that does no harm without a guard proves nothing.
  const pauses = schedule.some(({ action }) => action.kind === "pause") ? 1 : 0;
  return {
    name: `random-${seed}`,
    about: `Drawn from seed ${seed}: npm run partition -- --random --seed ${seed} --minutes 1`,
    nodes,
    workers: 4,
    locks: 2,
    mode: "any",
    ttlMs: 2_000,
    electionTimeoutMs: 500,
    // Drawn last: the schedule of a seed doesn't depend on it.
    limits: random.chance(snapshotShare) ? { snapshotEntries: 200, trailingEntriesMax: 50 } : {},
    fastSeconds: loadSeconds,
    seconds: loadSeconds,
    holdMs: 40,
    restMs: 80,
    schedule,
    expect: {
      electionsMin: 0,
      electionsMax: null,
      termsMax: null,
      grantsMin: 100,
      refusedMin: pauses,
      lostUnguardedMin: pauses,
      lossesMax: null,
      installsMin: 0,
      judged: {},
      refusesToStart: null,
    },
  };
}

function drawAction(random: Random, nodes: 3 | 5): Action {
  const who = random.pick<Role>(["leader", "leader", "follower", "follower2"]);
  const both = random.chance(0.5);
  return random.pick<() => Action>([
    () => ({ kind: "cut", ways: [{ from: who, to: "others", both: true }] }),
    () => ({ kind: "cut", ways: [{ from: who, to: "others", both: false }] }),
    () => ({ kind: "cut", ways: [{ from: "others", to: who, both: false }] }),
    () => ({ kind: "cut", ways: [drawLink(random, nodes, both)] }),
    () => ({ kind: "cut", ways: [{ from: random.pick(["w1", "w2", "workers"]), to: who, both }] }),
    () => ({ kind: "split", groups: drawGroups(random, nodes) }),
    () => ({
      kind: "flap",
      ways: [{ from: who, to: "others", both }],
      upMs: random.between(100, 1_500),
      downMs: random.between(100, 1_500),
    }),
    () => ({ kind: "reset", ways: [{ from: random.pick(["nodes", "clients"]), to: "nodes", both: false }] }),
    () => ({ kind: "kill", who: [who], damage: null }),
    () => ({ kind: "kill", who: ["nodes"], damage: null }),
    () => ({ kind: "kill", who: ["holder"], damage: null }),
    () => ({ kind: "terminate", who: [who] }),
    () => ({ kind: "stop", who: [random.pick([who, "nodes", "w1"])] }),
    () => ({ kind: "crashLoop", who: [who], everyMs: random.between(300, 3_000) }),
    () => ({ kind: "roll", signal: random.pick(["SIGTERM", "SIGKILL"]) }),
    () => ({ kind: "pause", how: random.pick(["stop", "burn", "store"]) }),
  ])();
}

function drawLink(random: Random, nodes: number, both: boolean): { from: Role; to: Role; both: boolean } {
  const from = Math.ceil(random.fraction() * nodes) || 1;
  const step = Math.ceil(random.fraction() * (nodes - 1)) || 1;
  return { from: `n${from}`, to: `n${((from + step - 1) % nodes) + 1}`, both };
}

/** The leader is on either side. */
function drawGroups(random: Random, nodes: number): readonly (readonly Role[])[] {
  const followers = Array.from({ length: nodes - 1 }, (_, at) => `follower${at + 1}`);
  const size = Math.floor(random.fraction() * (nodes - 1));
  return [["leader", ...followers.slice(0, size)], followers.slice(size)];
}

/** sfc32: small, fast, and good enough to draw from. */
class Random {
  private a: number;
  private b: number;
  private c: number;
  private counter: number;

  constructor(seed: number) {
    this.a = 0;
    this.b = seed | 0;
    this.c = Math.floor(seed / 2 ** 32) | 0;
    this.counter = 1;
    for (let round = 0; round < 12; round += 1) this.next();
  }

  fraction(): number {
    return (this.next() >>> 0) / 2 ** 32;
  }

  between(least: number, most: number): number {
    const value = least + this.fraction() * (most - least);
    return most > 100 ? Math.round(value) : Math.round(value * 10) / 10;
  }

  chance(share: number): boolean {
    return this.fraction() < share;
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[Math.floor(this.fraction() * items.length)] as Item;
  }

  private next(): number {
    const sum = (((this.a + this.b) | 0) + this.counter) | 0;
    this.counter = (this.counter + 1) | 0;
    this.a = this.b ^ (this.b >>> 9);
    this.b = (this.c + (this.c << 3)) | 0;
    this.c = (this.c << 21) | (this.c >>> 11);
    this.c = (this.c + sum) | 0;
    return sum;
  }
}
