/** Schedules that the lease keeper once did not survive. */
import assert from "node:assert/strict";
import { runInThisContext } from "node:vm";
import { describe, it } from "node:test";
import { served } from "./lease-bench.js";

/** Runs it, and fails when it doesn't come back. */
function within(ms: number, run: () => void): void {
  const shared = globalThis as { holdfastTestRun?: () => void };
  shared.holdfastTestRun = run;
  runInThisContext("holdfastTestRun()", { timeout: ms });
  delete shared.holdfastTestRun;
}

describe("lease keeper: rounding", () => {
  it("an eighth that is due to the last bit is heard out", () => {
    for (let offset = 1; offset <= 20; offset += 1) {
      const bench = served();
      bench.now = 1_000_000 + offset * 0.37;
      const sessions = Array.from({ length: 50 }, (_, at) => bench.open(2_001 + at * 7));
      within(2_000, () => bench.pass(2_500));
      assert.equal(bench.ended.length, sessions.length);
    }
  });
});

describe("lease keeper: expiries", () => {
  /** Silent for its whole TTL, with the round that this takes; its expiry is not committed. */
  it("a session that was ready to expire twice is counted once, and later expiries go on", () => {
    const bench = served();
    const confirm = (): void => {
      for (const round of bench.rounds.splice(0)) round.ready();
    };
    /** All but expiries is committed. */
    const settle = (): void => {
      confirm();
      const held = bench.tail.filter((command) => command.kind === "expireSessions");
      const others = bench.tail.filter((command) => command.kind !== "expireSessions");
      bench.tail.length = 0;
      for (const command of others) bench.apply(command);
      bench.tail.push(...held);
      bench.keeper.flush();
      confirm();
    };
    const first = bench.open(2_000);
    const second = bench.open(4_000);
    bench.pass(2_020, settle);
    bench.keeper.decide(bench.now);
    assert.match(bench.proposed(), /expireSessions$/, "the first one's expiry is under way, and stays there");
    bench.pass(2_020, settle);
    bench.keepalive(second, 1);
    settle();
    bench.pass(4_040, settle);
    const third = bench.open(2_000);
    bench.commit();
    assert.deepEqual(bench.ended, [`${first}:expired`]);
    bench.pass(10_000);
    assert.deepEqual(bench.ended.slice(1).sort(), [`${second}:expired`, `${third}:expired`].sort());
  });

  it("a refused expiry is tried again, but not without a pause", () => {
    const bench = served();
    const session = bench.open(2_000);
    bench.pass(2_020, () => bench.commit());
    for (const round of bench.rounds.splice(0)) round.ready();
    bench.refuses = true;
    bench.keeper.decide(bench.now);
    assert.ok(bench.keeper.nextDeadlineMs() >= bench.now + 50, `due at ${bench.keeper.nextDeadlineMs() - bench.now}`);
    bench.refuses = false;
    bench.pass(300);
    assert.deepEqual(bench.ended, [`${session}:expired`]);
  });
});

describe("lease keeper: memory", () => {
  it("forgets the deadlines of holds that were given back and of sessions that were closed", () => {
    const bench = served();
    const session = bench.open(3_600_000);
    const terms = {
      names: ["a"],
      mode: "exclusive",
      slots: 0,
      wait: true,
      lockDelayMs: 0,
      maxHoldMs: 604_800_000,
      info: "",
    } as const;
    for (let request = 1; request < 100_000; request += 2) {
      bench.apply({ kind: "acquire", session, request, settled: request, seen: [], ...terms });
      bench.apply({
        kind: "release",
        session,
        request: request + 1,
        settled: request,
        seen: [],
        of: request,
        afterMs: 0,
      });
      const other = bench.open(3_600_000);
      bench.apply({ kind: "closeSession", session: other, request: 1, settled: 1, seen: [] });
    }
    assert.ok(bench.keeper.deadlineCount < 20_000, `${bench.keeper.deadlineCount} deadlines are kept for one session`);
    bench.apply({ kind: "acquire", session, request: 100_001, settled: 100_001, seen: [], ...terms, maxHoldMs: 5_000 });
    bench.pass(5_050);
    assert.equal(bench.machine.holdCount, 0, "those that count are kept");
  });
});
