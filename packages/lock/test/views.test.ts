import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LockMachine } from "../src/lock-machine.js";
import type { Command } from "../src/types.js";

const key = (at: number): string => at.toString(16).padStart(32, "0");

/** Locks and holders with long texts: more than an answer's frame could hold. */
function crowded(sessions: number, acquire: (session: number, at: number) => Command[]): LockMachine {
  const machine = new LockMachine();
  let index = 0;
  for (let at = 0; at < sessions; at += 1) {
    index += 1;
    const session = index;
    machine.apply(index, { kind: "openSession", key: key(at + 1), ttlMs: 10_000, info: "x".repeat(1_000) });
    for (const command of acquire(session, at)) {
      index += 1;
      machine.apply(index, command);
    }
  }
  return machine;
}

function shared(session: number, request: number, name: string): Command {
  const who = { session, request, settled: 1, seen: [] };
  const how = { mode: "shared", slots: 0, wait: true, lockDelayMs: 0, maxHoldMs: 0, info: "" } as const;
  return { kind: "acquire", ...who, names: [name], ...how };
}

describe("views are bounded", () => {
  it("a lock shows its first 1,024 holders and counts them all", () => {
    const machine = crowded(1_500, (session) => [shared(session, 1, "read")]);
    const view = machine.lockView("read", 16);
    assert.equal(view?.holders.length, 1_024);
    assert.equal(view.holderCount, 1_500);
    const [listed] = machine.list("", "", 10).locks;
    assert.equal(listed?.holders.length, 16);
    assert.equal(listed.holderCount, 1_500);
  });

  it("a listing ends with `more` before it is too long for a frame, and goes on behind its last lock", () => {
    const name = (at: number): string => `${String(at).padStart(4, "0")}${"n".repeat(300)}`;
    const machine = crowded(300, (session, at) =>
      Array.from({ length: 5 }, (_, number) => shared(session, number + 1, name((at * 5 + number) % 750))),
    );
    const seen: string[] = [];
    for (let after = "", more = true; more; ) {
      const list = machine.list("", after, 1_000);
      assert.ok(JSON.stringify(list).length < 1_500_000);
      assert.ok(list.locks.length > 0);
      for (const lock of list.locks) seen.push(lock.name);
      after = seen.at(-1) ?? "";
      more = list.more;
    }
    assert.deepEqual(
      seen,
      Array.from({ length: 750 }, (_, at) => name(at)),
    );
  });
});
