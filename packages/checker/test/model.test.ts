/** Corners of the lock's rules that a well-behaved client seldom comes to: what a machine may say of them, and what not. */
import test from "node:test";
import type { Effect, History, LogCommand, Outcome, Rejection, Rule } from "../src/index.js";
import { granted } from "./edits.js";
import { alone, logged, timed } from "./scenes.js";
import type { Fact } from "./service/world.js";
import { assertAccepted, assertRejected } from "./verdicts.js";

type Entry = readonly [LogCommand, readonly Effect[]];

/** One node, which says this of these entries. */
function told(entries: readonly Entry[]): History {
  const facts = entries.flatMap(([command, effects], at): (readonly [number, Fact])[] => {
    const index = at + 1;
    const applied: Fact = { kind: "applied", node: "n1", index, hash: `h${index}`, stateHash: null, effects };
    return [
      [at, logged(command)],
      [at, applied],
    ];
  });
  return timed(facts);
}

function right(...entries: readonly Entry[]): void {
  assertAccepted(told(entries));
}

/** Of the last entry. */
function wrong(rule: Rule, ...entries: readonly Entry[]): void {
  assertAccepted(told(entries.slice(0, -1)));
  assertRejected(rule, told(entries));
}

const key = "k";
const opening: Entry = [
  { kind: "openSession", key, ttlMs: 9_000 },
  [{ kind: "sessionOpened", key, session: 1, ttlMs: 9_000, isNew: true }],
];

function numbered(request: number, others: { settled?: number; seen?: readonly number[]; session?: number } = {}) {
  return { session: 1, request, settled: 1, seen: [], ...others };
}

function answer(request: number, outcome: Outcome, session = 1): Effect {
  return { kind: "outcome", session, request, outcome };
}

function rejected(request: number, rejection: Rejection): Effect {
  return { kind: "rejected", session: 1, request, rejection };
}

function acquiring(
  request: number,
  names: readonly string[],
  others: Partial<Extract<LogCommand, { kind: "acquire" }>> = {},
): LogCommand {
  const terms = { mode: "exclusive", slots: 0, wait: true, lockDelayMs: 0, maxHoldMs: 0 } as const;
  return { kind: "acquire", ...numbered(request), names, ...terms, ...others };
}

test("a session is opened once for a key, until it ends", () => {
  const again: Entry = [
    { kind: "openSession", key, ttlMs: 5_000 },
    [{ kind: "sessionOpened", key, session: 1, ttlMs: 9_000, isNew: false }],
  ];
  right(opening, again);
  wrong("replay", opening, [again[0], [{ kind: "sessionOpened", key, session: 2, ttlMs: 5_000, isNew: true }]]);
  const close: Entry = [
    { kind: "closeSession", ...numbered(1) },
    [answer(1, { kind: "sessionClosed" }), { kind: "sessionEnded", session: 1, reason: "closed" }],
  ];
  right(opening, close, [again[0], [{ kind: "sessionOpened", key, session: 3, ttlMs: 5_000, isNew: true }]]);
  // The copy of a closing gets its answer; anything else, that the session is gone, and why.
  right(opening, close, [close[0], [answer(1, { kind: "sessionClosed" })]]);
  wrong("replay", opening, close, [close[0], [rejected(1, { kind: "sessionGone", reason: "closed" })]]);
  right(opening, close, [
    { kind: "closeSession", ...numbered(2) },
    [rejected(2, { kind: "sessionGone", reason: "closed" })],
  ]);
  wrong("replay", opening, close, [acquiring(2, ["a"]), [rejected(2, { kind: "sessionGone", reason: null })]]);
  wrong("replay", opening, close, [acquiring(2, ["a"]), [rejected(2, { kind: "sessionGone", reason: "expired" })]]);
});

test("why a session ended may be forgotten when 1,024 others have ended since", () => {
  const ends = (count: number): Entry[] =>
    Array.from({ length: count }, (_, at): Entry[] => {
      const session = 2 * at + 1;
      const name = `k${at}`;
      return [
        [
          { kind: "openSession", key: name, ttlMs: 9_000 },
          [{ kind: "sessionOpened", key: name, session, ttlMs: 9_000, isNew: true }],
        ],
        [
          { kind: "closeSession", ...numbered(1, { session }) },
          [answer(1, { kind: "sessionClosed" }, session), { kind: "sessionEnded", session, reason: "closed" }],
        ],
      ];
    }).flat();
  const late = acquiring(2, ["a"]);
  const forgotten: Entry = [late, [rejected(2, { kind: "sessionGone", reason: null })]];
  wrong("replay", ...ends(1_024), forgotten);
  right(...ends(1_025), forgotten);
  right(...ends(1_025), [late, [rejected(2, { kind: "sessionGone", reason: "closed" })]]);
  const close: LogCommand = { kind: "closeSession", ...numbered(1) };
  right(...ends(1_025), [close, [rejected(1, { kind: "sessionGone", reason: null })]]);
  right(...ends(1_025), [close, [answer(1, { kind: "sessionClosed" })]]);
});

test("an acquire may be refused for its number when 1,024 outcomes are kept, and not before", () => {
  const empty = (count: number): Entry[] =>
    Array.from({ length: count }, (_, at): Entry => {
      return [{ kind: "setInfo", ...numbered(at + 1), of: 5_000 }, [answer(at + 1, { kind: "notHeld" })]];
    });
  const command = acquiring(2_000, ["a"]);
  const refusal: Entry = [command, [rejected(2_000, { kind: "tooManyRequests" })]];
  wrong("replay", opening, ...empty(1_023), refusal);
  right(opening, ...empty(1_024), refusal);
  // It was not recorded: the same number may be tried again.
  right(opening, ...empty(1_024), refusal, [
    acquiring(2_000, ["a"], { settled: 500 }),
    granted(1, 2_000, alone("a", 1_027)),
  ]);
  // With this command 1,023 are left.
  wrong("replay", opening, ...empty(1_024), [{ ...command, seen: [7] } as LogCommand, refusal[1]]);
});

test("a number that is settled or seen is never executed again", () => {
  const first: Entry = [acquiring(1, ["a"]), granted(1, 1, alone("a", 2))];
  const release: Entry = [{ kind: "release", ...numbered(2), of: 1, afterMs: 0 }, [answer(2, { kind: "released" })]];
  const next = (others: { settled?: number; seen?: readonly number[] }): Entry => {
    return [acquiring(3, ["b"], others), granted(1, 3, alone("b", 4))];
  };
  right(opening, first, release, next({}), [first[0], [answer(1, { kind: "released" })]]);
  const late: Entry = [first[0], [rejected(1, { kind: "settled" })]];
  right(opening, first, release, next({ settled: 3 }), late);
  right(opening, first, release, next({ seen: [1] }), late);
  right(opening, first, release, next({ seen: [1] }), [release[0], [answer(2, { kind: "released" })]]);
  wrong("one-effect", opening, first, release, next({ settled: 3 }), [first[0], granted(1, 1, alone("a", 5))]);
  wrong("one-effect", opening, first, release, next({ seen: [1] }), [first[0], granted(1, 1, alone("a", 5))]);
  // Who still holds can't have been seen to end, whatever its client says.
  right(
    opening,
    first,
    [acquiring(2, ["b"], { settled: 2, seen: [1] }), granted(1, 2, alone("b", 3))],
    [first[0], granted(1, 1, alone("a", 2)).slice(0, 1)],
  );
});

test("a cancel: of who waits, of who holds, of who has not come, of nothing", () => {
  const first: Entry = [acquiring(1, ["a"]), granted(1, 1, alone("a", 2))];
  const second: Entry = [acquiring(2, ["a"]), [answer(2, { kind: "waiting" })]];
  const cancel = (request: number, of: number, ...effects: readonly Effect[]): Entry => {
    return [{ kind: "cancel", ...numbered(request), of }, effects];
  };
  const cancelled = { kind: "cancelled" } as const;
  const notHeld = { kind: "notHeld" } as const;
  right(opening, first, second, cancel(3, 2, answer(3, cancelled), answer(2, cancelled)));
  right(opening, first, cancel(3, 1, answer(3, { kind: "alreadyGranted", grants: alone("a", 2) })));
  wrong("replay", opening, first, cancel(3, 1, answer(3, { kind: "alreadyGranted", grants: alone("a", 1) })));
  const ahead = cancel(3, 9, answer(3, cancelled), answer(9, cancelled));
  right(opening, ahead, [acquiring(9, ["a"]), [answer(9, cancelled)]]);
  wrong("one-effect", opening, ahead, [acquiring(9, ["a"]), granted(1, 9, alone("a", 3))]);
  right(opening, cancel(3, 3, answer(3, notHeld)));
  right(opening, ahead, cancel(4, 9, answer(4, notHeld)));
  const settled: Entry = [{ kind: "cancel", ...numbered(5, { settled: 4 }), of: 2 }, [answer(5, notHeld)]];
  right(opening, settled);
  wrong("replay", opening, cancel(3, 9, answer(3, notHeld)));
});

test("an info is set where something waits or is held", () => {
  const first: Entry = [acquiring(1, ["a"]), granted(1, 1, alone("a", 2))];
  const second: Entry = [acquiring(2, ["a"]), [answer(2, { kind: "waiting" })]];
  const set = (request: number, of: number, kind: "infoSet" | "notHeld"): Entry => {
    return [{ kind: "setInfo", ...numbered(request), of }, [answer(request, { kind })]];
  };
  right(
    opening,
    first,
    second,
    set(3, 1, "infoSet"),
    set(4, 2, "infoSet"),
    set(5, 3, "notHeld"),
    set(6, 77, "notHeld"),
  );
  wrong("replay", opening, first, set(3, 1, "notHeld"));
  wrong("replay", opening, first, set(3, 2, "infoSet"));
});

test("silence is counted up to eight eighths, once for a session, and only of the living", () => {
  const suspect = (ids: readonly number[], eighths: number, count: number): Entry => {
    return [{ kind: "suspectSessions", ids, eighths }, [{ kind: "silence", session: 1, count, renewed: false }]];
  };
  right(opening, suspect([1, 1], 4, 4), suspect([7, 1], 7, 8));
  wrong("replay", opening, suspect([1, 1], 4, 8));
  const renewal: Entry = [
    { kind: "renewSuspects", ids: [1, 1, 9] },
    [{ kind: "silence", session: 1, count: 0, renewed: true }],
  ];
  right(opening, suspect([1], 4, 4), renewal, [{ kind: "expireSessions", ids: [1, 9] }, [refused(1), refused(9)]]);
  wrong("conditional-expiry", opening, suspect([1], 4, 4), renewal, [
    { kind: "expireSessions", ids: [1] },
    [{ kind: "sessionEnded", session: 1, reason: "expired" }],
  ]);
});

function refused(session: number): Effect {
  return { kind: "expiryRefused", session };
}

test("the cluster version only rises", () => {
  const raise = (version: number, said: number): Entry => [
    { kind: "setClusterVersion", version },
    [{ kind: "clusterVersion", version: said }],
  ];
  right(raise(1, 1), raise(3, 3), raise(2, 3));
  wrong("replay", raise(3, 3), raise(2, 2));
});

test("one signing key takes another's place, in a cluster of the second version", () => {
  const raise: Entry = [{ kind: "setClusterVersion", version: 2 }, [{ kind: "clusterVersion", version: 2 }]];
  const key = (id: string, replaces: string | null, isSet: boolean): Entry => [
    { kind: "setSigningKey", id, replaces },
    [{ kind: "signingKeySet", id, replaces, isSet }],
  ];
  right(key("a", null, false), raise, key("a", "x", false), key("a", null, true), key("b", null, false));
  right(raise, key("a", null, true), key("b", "a", true), key("c", "a", false), key("a", "b", false));
  wrong("replay", key("a", null, true));
  wrong("replay", raise, key("a", null, true), key("b", null, true));
  wrong("replay", raise, key("a", null, true), key("b", "a", true), key("a", "b", true));
});

test("only exactly the hold, and exactly the lock-delay, that an entry names is ended", () => {
  const first: Entry = [acquiring(1, ["a"], { maxHoldMs: 100 }), granted(1, 1, alone("a", 2)).map(withMaxHold)];
  const end = (others: object, ...effects: readonly Effect[]): Entry => {
    return [{ kind: "endHold", session: 1, of: 1, token: 2, ...others }, effects];
  };
  right(opening, first, end({ token: 3 }), end({ of: 2 }), end({ session: 9 }));
  wrong("replay", opening, first, end({ token: 3 }, answer(1, { kind: "lost", reason: "max_hold", index: 3 })));
  const give: Entry = [
    { kind: "release", ...numbered(2), of: 1, afterMs: 500 },
    [answer(2, { kind: "released" }), { kind: "lockDelayBegan", name: "a", index: 3, delayMs: 500 }],
  ];
  right(
    opening,
    first,
    give,
    end({}),
    [{ kind: "endLockDelay", name: "a", index: 2 }, []],
    [{ kind: "endLockDelay", name: "b", index: 3 }, []],
  );
  wrong("lock-delay", opening, first, give, [
    { kind: "endLockDelay", name: "a", index: 2 },
    [{ kind: "lockDelayEnded", name: "a", index: 2 }],
  ]);
});

function withMaxHold(effect: Effect): Effect {
  if (effect.kind === "outcome" && effect.outcome.kind === "granted")
    return { ...effect, outcome: { ...effect.outcome, maxHoldMs: 100 } };
  return effect.kind === "holdBegan" ? { ...effect, maxHoldMs: 100 } : effect;
}

test("holds that end in one entry share a lock-delay, the longest", () => {
  const reader = (request: number, lockDelayMs: number, index: number): Entry => {
    const command = acquiring(request, ["a"], { mode: "shared", lockDelayMs });
    return [command, granted(1, request, alone("a", 2)).slice(0, index)];
  };
  const force = (delayMs: number): Entry => [
    { kind: "forceRelease", name: "a", token: 2, lockDelayMs: 700 },
    [
      { kind: "forced", name: "a", token: 2, ended: 2 },
      answer(1, { kind: "lost", reason: "forced", index: 4 }),
      answer(2, { kind: "lost", reason: "forced", index: 4 }),
      { kind: "lockDelayBegan", name: "a", index: 4, delayMs },
    ],
  ];
  right(opening, reader(1, 900, 2), reader(2, 100, 2), force(900));
  wrong("lock-delay", opening, reader(1, 900, 2), reader(2, 100, 2), force(700));
});
