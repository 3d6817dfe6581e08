import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Command } from "@holdfast/lock";
import { served } from "./lease-bench.js";

describe("lease keeper: keepalives", () => {
  it("acknowledges only after a quorum round that began after the keepalive", () => {
    const bench = served();
    const session = bench.open(8_000);
    bench.keepalive(session, 1);
    assert.equal(bench.rounds.length, 1);
    bench.keepalive(session, 2);
    assert.deepEqual(bench.acknowledged, []);
    bench.rounds.shift()?.ready();
    assert.deepEqual(bench.acknowledged, [`${session}:1`], "the second came after the first round began");
    bench.confirm();
    assert.deepEqual(bench.acknowledged, [`${session}:1`, `${session}:2`]);
  });

  it("shares one round among all keepalives of a turn", () => {
    const bench = served();
    const sessions = Array.from({ length: 100 }, () => bench.open(8_000));
    for (const session of sessions) bench.keeper.onKeepalive(session, 1, bench.now);
    bench.keeper.flush();
    assert.equal(bench.rounds.length, 1);
    bench.confirm();
    assert.equal(bench.acknowledged.length, 100);
  });

  it("knows no session that never was", () => {
    assert.equal(served().keepalive(4711, 1), false);
  });

  it("does not acknowledge between the proposal of a suspicion and the application of a later renewal", () => {
    const bench = served();
    const session = bench.open(8_000);
    bench.pass(4_040, () => {});
    assert.equal(bench.proposed(), "suspectSessions+4");
    bench.keepalive(session, 1);
    bench.confirm();
    assert.deepEqual(bench.acknowledged, [], "the suspicion is proposed, not yet applied");
    assert.equal(bench.proposed(), "suspectSessions+4 renewSuspects");
    bench.apply(bench.tail.shift() as Command);
    bench.confirm();
    assert.deepEqual(bench.acknowledged, [], "the suspicion is applied, the renewal is not");
    bench.commit();
    assert.deepEqual(bench.acknowledged, [`${session}:1`]);
    assert.equal(bench.machine.sessionView(session)?.silence, 0);
  });

  it("a suspicion proposed after the renewal holds the acknowledgement back again", () => {
    const bench = served();
    const session = bench.open(8_000);
    bench.pass(4_040, () => {});
    bench.keepalive(session, 1);
    bench.pass(4_040, () => {});
    assert.equal(bench.proposed(), "suspectSessions+4 renewSuspects suspectSessions+4");
    bench.apply(bench.tail.shift() as Command);
    bench.apply(bench.tail.shift() as Command);
    bench.rounds.shift()?.ready();
    assert.deepEqual(bench.acknowledged, []);
    bench.keeper.flush();
    assert.equal(bench.proposed(), "suspectSessions+4 renewSuspects");
    bench.commit();
    assert.deepEqual(bench.acknowledged, [`${session}:1`]);
  });

  it("an inherited suspicion needs a renewal too", () => {
    const bench = served();
    const session = bench.open(8_000);
    bench.pass(4_040, () => {});
    bench.changeLeader(1);
    bench.keepalive(session, 1);
    bench.confirm();
    assert.deepEqual(bench.acknowledged, []);
    bench.commit();
    assert.deepEqual(bench.acknowledged, [`${session}:1`]);
  });

  it("answers a session with a proposed expiry after that entry's outcome", () => {
    const bench = served();
    const session = bench.open(8_000);
    bench.pass(8_080, () => {
      for (const round of bench.rounds.splice(0)) round.ready();
    });
    bench.keeper.decide(bench.now);
    assert.match(bench.proposed(), /expireSessions$/);
    bench.keepalive(session, 1);
    bench.confirm();
    assert.deepEqual(bench.acknowledged, []);
    bench.commit();
    assert.deepEqual(bench.ended, [`${session}:expired`]);
    assert.deepEqual(bench.acknowledged, []);
    assert.equal(bench.keepalive(session, 2), false);
  });
});

describe("lease keeper: silence and expiry", () => {
  it("counts half a TTL first, then eighths, each with 1 % on top, and expires at eight", () => {
    const bench = served();
    const session = bench.open(8_000);
    const seen: string[] = [];
    const start = bench.now;
    bench.pass(20_000, () => {
      if (bench.tail.length > 0) seen.push(`${bench.now - start} ${bench.proposed()}`);
      bench.settle();
    });
    assert.deepEqual(seen.slice(0, 5), [
      "4040 suspectSessions+4",
      "5050 suspectSessions+1",
      "6060 suspectSessions+1",
      "7070 suspectSessions+1",
      "8080 suspectSessions+1",
    ]);
    assert.deepEqual(bench.ended, [`${session}:expired`]);
  });

  it("gives a session not heard in its term the rest of its eighths", () => {
    const bench = served();
    const session = bench.open(8_000);
    bench.pass(5_050);
    assert.equal(bench.machine.sessionView(session)?.silence, 5);
    bench.changeLeader();
    const start = bench.now;
    bench.pass(3_029);
    assert.deepEqual(bench.ended, []);
    bench.pass(1);
    assert.deepEqual(bench.ended, [`${session}:expired`]);
    assert.equal(bench.now - start, 3_030);
  });

  it("expires at once, after its no-op and a round, a session whose eighths are all in the log", () => {
    const bench = served();
    const session = bench.open(8_000);
    bench.pass(8_080, () => bench.commit());
    assert.equal(bench.machine.sessionView(session)?.silence, 8);
    bench.changeLeader();
    bench.pass(0);
    assert.deepEqual(bench.ended, [`${session}:expired`]);
  });

  it("frees a dead holder within 2 x TTL though the leader changes every TTL/2", () => {
    for (const period of [2, 1, 0.75, 0.6, 0.55, 0.51, 0.5]) {
      const bench = served();
      bench.open(8_000);
      const start = bench.now;
      while (bench.ended.length === 0) {
        bench.pass(8_000 * period);
        if (bench.ended.length > 0) break;
        bench.now += 120; // nobody leads meanwhile
        bench.changeLeader();
        assert.ok(bench.now - start < 20 * 8_000, `never freed with a leader change every ${period} TTL`);
      }
      assert.ok(bench.now - start <= 2 * 8_000 + 1_500, `${bench.now - start} ms with a change every ${period} TTL`);
    }
  });

  it("never counts a session that renews every third", () => {
    const bench = served();
    const session = bench.open(6_000);
    for (let number = 1; number <= 30; number += 1) {
      bench.pass(2_000);
      bench.keepalive(session, number);
      bench.settle();
      if (number % 7 === 0) {
        bench.changeLeader();
        bench.keepalive(session, number);
        bench.settle();
      }
    }
    assert.equal(bench.machine.sessionView(session)?.silence, 0);
    assert.deepEqual(bench.ended, []);
    assert.equal(bench.acknowledged.at(-1), `${session}:30`);
  });

  it("proposes no expiry before a round that began after the deadline, and none if a keepalive came meanwhile", () => {
    const bench = served();
    const session = bench.open(8_000);
    bench.pass(8_080, () => bench.commit());
    assert.equal(bench.rounds.length, 1);
    assert.deepEqual(bench.tail, []);
    bench.keepalive(session, 1);
    bench.settle();
    assert.deepEqual(bench.ended, []);
    assert.deepEqual(bench.acknowledged, [`${session}:1`]);
  });

  it("asks again when the round failed (a transfer that came to nothing)", () => {
    const bench = served();
    const session = bench.open(8_000);
    bench.pass(8_080, () => bench.commit());
    for (const round of bench.rounds.splice(0)) round.failed();
    bench.pass(200);
    assert.deepEqual(bench.ended, [`${session}:expired`]);
  });

  it("tries refused suspicions and expiries again", () => {
    const bench = served();
    const session = bench.open(8_000);
    bench.refuses = true;
    bench.pass(12_000);
    assert.deepEqual(bench.ended, []);
    assert.equal(bench.machine.sessionView(session)?.silence, 0);
    bench.refuses = false;
    bench.pass(300);
    assert.deepEqual(bench.ended, [`${session}:expired`]);
  });

  it("moves every deadline by a stall", () => {
    const bench = served();
    const session = bench.open(8_000);
    bench.pass(3_000);
    bench.now += 60_000;
    bench.keeper.noteStall(60_000);
    bench.keeper.decide(bench.now);
    bench.settle();
    assert.equal(bench.machine.sessionView(session)?.silence, 0);
    bench.pass(5_079);
    assert.deepEqual(bench.ended, []);
    bench.pass(1);
    assert.deepEqual(bench.ended, [`${session}:expired`]);
  });

  it("a stall of a former leadership makes no lease of the next one longer", () => {
    const bench = served();
    const session = bench.open(8_000);
    bench.now += 60_000;
    bench.keeper.noteStall(60_000);
    bench.keeper.start(bench.machine, bench.now);
    bench.pass(8_079);
    assert.deepEqual(bench.ended, []);
    bench.pass(1);
    assert.deepEqual(bench.ended, [`${session}:expired`]);
  });

  it("ends 5,000 sessions in batches of 1,000, one in flight at a time", () => {
    const bench = served();
    for (let count = 0; count < 5_000; count += 1) bench.open(8_000);
    let expiries = 0;
    bench.pass(8_080, () => {
      while (bench.tail.length > 0 || bench.rounds.length > 0) {
        const ending = bench.tail.filter((command) => command.kind === "expireSessions");
        assert.ok(ending.length <= 1);
        for (const command of bench.tail) if ("ids" in command) assert.ok(command.ids.length <= 1_000);
        expiries += ending.length;
        bench.commit();
        bench.confirm();
        bench.keeper.decide(bench.now);
      }
    });
    assert.equal(bench.ended.length, 5_000);
    assert.equal(expiries, 5);
  });
});

describe("lease keeper: sessions that hold much", () => {
  it("end in entries that each end some 1,000 holds and waits, one in flight at a time", () => {
    const bench = served();
    const sessions = Array.from({ length: 40 }, () => bench.open(8_000));
    for (const session of sessions) {
      for (let request = 1; request <= 100; request += 1) bench.acquire(session, request, `${session}-${request}`);
    }
    const perEntry: number[] = [];
    bench.pass(8_080, () => {
      while (bench.tail.length > 0 || bench.rounds.length > 0) {
        for (const command of bench.tail) if (command.kind === "expireSessions") perEntry.push(command.ids.length);
        bench.commit();
        bench.confirm();
        bench.keeper.decide(bench.now);
      }
    });
    assert.equal(bench.ended.length, 40);
    assert.deepEqual(perEntry, [10, 10, 10, 10]);
  });
});

describe("lease keeper: maxHold and lock-delay", () => {
  const acquire = {
    kind: "acquire",
    ...{ request: 1, settled: 1, seen: [] },
    names: ["a"],
    mode: "exclusive",
    slots: 0,
    wait: true,
    lockDelayMs: 0,
    maxHoldMs: 5_000,
    info: "",
  } as const;

  it("proposes nothing for a hold that was given back in time", () => {
    const bench = served();
    const session = bench.open(3_600_000);
    bench.apply({ ...acquire, session });
    bench.apply({ kind: "release", session, request: 2, settled: 1, seen: [], of: 1, afterMs: 0 });
    bench.pass(6_000, () => assert.equal(bench.proposed(), ""));
  });

  it("ends a hold after maxHold and a delay after its time, and anew at a new leader", () => {
    const bench = served();
    const session = bench.open(3_600_000);
    bench.apply({ ...acquire, session, lockDelayMs: 1_000 });
    bench.pass(4_000);
    bench.changeLeader();
    bench.pass(5_049);
    assert.equal(bench.machine.lockView("a", 1)?.holders.length, 1);
    bench.pass(1);
    assert.equal(bench.machine.lockView("a", 1)?.holders.length, 0);
    assert.equal(bench.machine.lockView("a", 1)?.delays.length, 1);
    bench.pass(500);
    bench.changeLeader();
    bench.pass(1_009);
    assert.equal(bench.machine.lockView("a", 1)?.delays.length, 1);
    bench.pass(1);
    assert.equal(bench.machine.lockView("a", 1), null);
  });
});
