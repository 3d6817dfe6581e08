import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Outcome } from "@holdfast/lock";
import type { Refusal } from "@holdfast/wire";
import { refusalAnswer, rejectionAnswer } from "../../src/api/answers.js";
import type { Answer } from "../../src/api/answers.js";
import { acquireAnswer, cancelAnswer, changeBody, lockBody, releaseAnswer, sessionBody } from "../../src/api/views.js";

/** "409 lock_held", or "200 granted" */
function told(answer: Answer | null): string {
  if (answer === null) return "nothing yet";
  const { code, outcome } = answer.body as { readonly code?: string; readonly outcome?: string };
  return `${answer.status} ${code ?? outcome}`;
}

const holder = { session: 5, request: 9, token: 7, slot: null, mode: "exclusive", info: "x" } as const;
const holderBody = { session: 5, token: 7, slot: null, mode: "exclusive", info: "x" };
const grants = [{ name: "a", token: 7, slot: null }];

/** Each outcome, and what it is to an acquire, a release and a cancel. */
const outcomes: readonly [Outcome, string, string, string][] = [
  [{ kind: "waiting", ahead: 1, holder }, "nothing yet", "400 invalid_argument", "400 invalid_argument"],
  [{ kind: "granted", grants, maxHoldMs: 0 }, "200 granted", "400 invalid_argument", "400 invalid_argument"],
  [{ kind: "lost", reason: "forced", index: 9 }, "409 lock_lost", "400 invalid_argument", "400 invalid_argument"],
  [{ kind: "lost", reason: "max_hold", index: 9 }, "409 lock_lost", "400 invalid_argument", "400 invalid_argument"],
  [{ kind: "lost", reason: "expired", index: 9 }, "410 session_gone", "400 invalid_argument", "400 invalid_argument"],
  [{ kind: "lost", reason: "closed", index: 9 }, "410 session_gone", "400 invalid_argument", "400 invalid_argument"],
  [{ kind: "lost", reason: "restored", index: 9 }, "410 session_gone", "400 invalid_argument", "400 invalid_argument"],
  [{ kind: "released" }, "409 already_released", "200 released", "400 invalid_argument"],
  [{ kind: "cancelled" }, "409 wait_timeout", "400 invalid_argument", "200 cancelled"],
  [{ kind: "alreadyGranted", grants }, "400 invalid_argument", "400 invalid_argument", "200 already_granted"],
  [{ kind: "notHeld", holders: [holder] }, "400 invalid_argument", "200 not_held", "200 not_held"],
  [{ kind: "infoSet" }, "400 invalid_argument", "400 invalid_argument", "400 invalid_argument"],
  [{ kind: "sessionClosed" }, "400 invalid_argument", "400 invalid_argument", "400 invalid_argument"],
  [{ kind: "lockHeld", name: "a", holder }, "409 lock_held", "400 invalid_argument", "400 invalid_argument"],
  [{ kind: "lockDelayed", name: "a", delayMs: 5 }, "409 lock_delayed", "400 invalid_argument", "400 invalid_argument"],
  [{ kind: "slotsDiffer", name: "a", slots: 2 }, "409 slots_differ", "400 invalid_argument", "400 invalid_argument"],
];

describe("outcomes as answers", () => {
  for (const [outcome, acquire, release, cancel] of outcomes) {
    it(JSON.stringify(outcome), () => {
      assert.equal(told(acquireAnswer(3, outcome, { ahead: null, holder: null })), acquire);
      assert.equal(told(releaseAnswer(3, outcome)), release);
      assert.equal(told(cancelAnswer(3, outcome)), cancel);
    });
  }

  it("a wait that is over tells what was last heard, and nobody's number of a request", () => {
    const answer = acquireAnswer(3, { kind: "cancelled" }, { ahead: 2, holder });
    const body = answer?.body as unknown as Record<string, unknown>;
    assert.deepEqual([body["ahead"], body["holder"], body["retryable"]], [2, holderBody, true]);
  });
});

const leader = { id: "n2", client: "10.0.0.2:7101" };
/** What a node refuses with, and the answer of n1. */
const refusals: readonly [Refusal, string][] = [
  [{ code: "not_leader", leader }, "307 not_leader"],
  [{ code: "not_leader", leader: null }, "503 not_leader"],
  [{ code: "not_leader", leader: { id: "n1", client: "10.0.0.1:7101" } }, "503 not_leader"],
  [{ code: "no_quorum" }, "503 no_quorum"],
  [{ code: "overloaded" }, "503 overloaded"],
  [{ code: "unknown_outcome" }, "503 unknown_outcome"],
  [{ code: "session_gone", reason: "expired" }, "410 session_gone"],
  [{ code: "invalid_argument", argument: "ttlMs", problem: "is wrong" }, "400 invalid_argument"],
  [{ code: "invalid_argument", argument: "session", problem: "is not resumed" }, "503 not_leader"],
  [{ code: "incompatible", problem: "is newer" }, "501 incompatible"],
  [{ code: "unauthorized" }, "403 unauthorized"],
  [{ code: "change_refused", reason: "no_voters", members: [] }, "409 change_refused"],
];

describe("refusals as answers", () => {
  for (const [refusal, expected] of refusals) {
    it(JSON.stringify(refusal), () => {
      const answer = refusalAnswer(refusal, "n1");
      assert.equal(told(answer), expected);
      assert.equal(answer.isProblem, true);
      assert.equal("retry-after" in (answer.headers ?? {}), answer.status === 503);
      assert.equal(answer.redirectTo, answer.status === 307 ? leader.client : undefined);
    });
  }

  it("rejections of the lock machine", () => {
    assert.equal(told(rejectionAnswer({ kind: "sessionGone", reason: null })), "410 session_gone");
    assert.equal(told(rejectionAnswer({ kind: "settled" })), "400 invalid_argument");
    const full = rejectionAnswer({ kind: "tooManyRequests" });
    assert.deepEqual([told(full), full.headers], ["429 overloaded", { "retry-after": "1" }]);
  });
});

describe("views", () => {
  it("of a session: its client's numbers, and none of the node's own commands", () => {
    const view = {
      session: 5,
      ttlMs: 1_000,
      holds: [{ request: 3, grants, maxHoldMs: 0 }],
      waiting: [6],
      outcomes: [
        { request: 9, outcome: { kind: "alreadyGranted", grants } as const },
        { request: 10, outcome: { kind: "cancelled" } as const },
        { request: 11, outcome: { kind: "released" } as const },
      ],
    };
    assert.deepEqual(sessionBody(view), {
      session: 5,
      ttlMs: 1_000,
      holds: [{ request: 1, grants, maxHoldMs: 0 }],
      waiting: [2],
      outcomes: [{ request: 3, outcome: "already_granted" }],
    });
  });

  it("of a lock and of a change", () => {
    const waiter = { session: 6, request: 3, mode: "exclusive", info: "", names: ["a"], reserves: false } as const;
    const rest = { name: "a", mode: "exclusive", slots: 0, holderCount: 1, waiterCount: 1, delays: [] } as const;
    const { request: _, ...shown } = waiter;
    assert.deepEqual(lockBody({ ...rest, holders: [holder], waiters: [waiter] }), {
      ...rest,
      holders: [holderBody],
      waiters: [shown],
    });
    const change = { name: "a", token: 7, slot: 1 };
    assert.deepEqual(changeBody({ ...change, change: "lost" }), { type: "lost", ...change });
    assert.deepEqual(changeBody({ ...change, change: "delayEnded" }), { type: "delay_ended", ...change, token: null });
  });
});
