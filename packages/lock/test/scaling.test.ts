/** Costs are counted in executed blocks of our own code (V8's precise coverage), not in time: the same on a busy machine. */
import assert from "node:assert/strict";
import { Session as Inspector } from "node:inspector";
import type { Profiler } from "node:inspector";
import test from "node:test";
import { LockMachine } from "../src/index.js";
import type { Command } from "../src/index.js";
import { acquire, cancel, open, release } from "./commands.js";

const perSession = 500;

/** A machine where one lock is held and `waiters` wait for it. Session ids are 1, 2, ...; the holder is number 1 of session 1. */
class Crowd {
  readonly machine: LockMachine = new LockMachine();
  readonly waiting: { readonly session: number; readonly request: number }[] = [];
  private index = 0;
  private readonly nextRequest: number[] = [];
  private holder = { session: 1, request: 1 };

  constructor(waiters: number) {
    const sessions = Math.ceil((waiters + 1) / perSession) + 1;
    for (let session = 1; session <= sessions; session += 1) {
      this.apply(open(`k${session}`));
      this.nextRequest[session] = 1;
    }
    this.join(1);
    for (let count = 0; count < waiters; count += 1) this.join(1 + Math.floor((count + 1) / perSession));
    this.waiting.shift();
  }

  apply(command: Command) {
    this.index += 1;
    return this.machine.apply(this.index, command);
  }

  take(session: number): number {
    const request = this.nextRequest[session] ?? 1;
    this.nextRequest[session] = request + 1;
    return request;
  }

  join(session: number): void {
    const request = this.take(session);
    this.apply(acquire(session, request, ["a"]));
    this.waiting.push({ session, request });
  }

  handOff(): void {
    const { session, request } = this.holder;
    const number = this.take(session);
    const effects = this.apply(release(session, number, request, { seen: [number - 1] }));
    const next = this.waiting.shift();
    assert.ok(next !== undefined && effects.some((each) => each.kind === "holdBegan" && each.session === next.session));
    this.holder = next;
  }
}

test("a handoff costs the same with 10 waiters and with 10,000", () => {
  const cost = (waiters: number): number => {
    const crowd = new Crowd(waiters);
    return blocksOf(() => {
      for (let count = 0; count < 8; count += 1) crowd.handOff();
    });
  };
  assertFlat(cost(10), cost(10_000));
});

test("to join, to cancel in mid-queue and to be refused cost the same with 10 waiters and with 10,000", () => {
  const cost = (waiters: number): number => {
    const crowd = new Crowd(waiters);
    const last = crowd.waiting.length > 100 ? 21 : 1;
    const middle = crowd.waiting[crowd.waiting.length >> 1] ?? { session: 1, request: 1 };
    return blocksOf(() => {
      crowd.join(last);
      crowd.apply(cancel(middle.session, crowd.take(middle.session), middle.request));
      crowd.apply(acquire(last, crowd.take(last), ["a"], { wait: false }));
    });
  };
  assertFlat(cost(10), cost(10_000));
});

test("a retry of the last of 10,000 waiters finds its place without walking the queue", () => {
  const crowd = new Crowd(10_000);
  const last = crowd.waiting.at(-1) ?? { session: 1, request: 1 };
  let ahead = 0;
  const blocks = blocksOf(() => {
    const [effect] = crowd.apply(acquire(last.session, last.request, ["a"]));
    if (effect?.kind === "outcome" && effect.outcome.kind === "waiting") ahead = effect.outcome.ahead;
  });
  assert.equal(ahead, 9_999);
  assert.ok(blocks < 2_000, `${blocks} blocks`);
});

test("storms of acquires and cancels leave nothing behind", () => {
  const crowd = new Crowd(0);
  for (let count = 0; count < 400; count += 1) {
    const request = crowd.take(1);
    crowd.apply(acquire(1, request, ["a", "b", `c${count}`]));
    if (count % 3 === 0) crowd.apply(acquire(1, crowd.take(1), ["b"], { wait: false }));
    crowd.apply(cancel(1, crowd.take(1), request));
  }
  crowd.machine.checkInvariants();
  assert.equal(crowd.machine.waiterCount, 0);
  assert.equal(crowd.machine.lockCount, 1);
  crowd.join(1);
  crowd.handOff();
});

/** How many blocks of this package were executed. (Loops inside built-in functions aren't ours and aren't counted.) */
function blocksOf(run: () => void): number {
  const inspector = new Inspector();
  inspector.connect();
  inspector.post("Profiler.enable");
  inspector.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
  run();
  let scripts: Profiler.ScriptCoverage[] = [];
  inspector.post("Profiler.takePreciseCoverage", (error, { result }) => {
    assert.equal(error, null);
    scripts = result;
  });
  inspector.post("Profiler.stopPreciseCoverage");
  inspector.disconnect();
  const own = scripts.filter(({ url }) => url.includes("/packages/lock/dist/src/"));
  assert.ok(own.length > 5, "the coverage is of this package");
  const ranges = own.flatMap(({ functions }) => functions.flatMap((each) => each.ranges));
  return ranges.reduce((sum, { count }) => sum + count, 0);
}

function assertFlat(few: number, many: number): void {
  assert.ok(few > 20, `${few} blocks: something was counted`);
  assert.ok(many < few * 1.5, `${few} blocks with few waiters, ${many} with many`);
}
