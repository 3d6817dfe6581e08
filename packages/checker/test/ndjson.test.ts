/** Histories in files: what is written is read again, and what is no history is refused by line and field. */
import assert from "node:assert/strict";
import test from "node:test";
import {
  encodeEvent,
  encodeHeader,
  encodeHistory,
  HistoryError,
  parseEvent,
  parseHeader,
  parseHistory,
} from "../src/index.js";
import type { History, HistoryEvent, LogCommand } from "../src/index.js";

const header = { version: 1, origin: "by hand", nodes: ["n1"], electionTimeoutMs: 500, firstIndex: 1 } as const;
const numbered = { session: 2, request: 3, settled: 1, seen: [2] };

function committed(command: LogCommand): HistoryEvent {
  return {
    at: 1,
    kind: "committed",
    index: 5,
    term: 1,
    hash: "h",
    decidedInTerm: null,
    entry: { kind: "command", command },
  };
}

/** One of every kind. */
const samples: readonly HistoryEvent[] = [
  {
    at: 0.5,
    kind: "call",
    client: "c1",
    call: 1,
    op: { kind: "acquire", names: ["a"], mode: "slot", slots: 3, wait: true, maxHoldMs: 0 },
  },
  { at: 1, kind: "call", client: "c1", call: 2, op: { kind: "release", of: 1 } },
  { at: 1, kind: "call", client: "c1", call: 3, op: { kind: "close" } },
  { at: 1, kind: "call", client: "c1", call: 4, op: { kind: "forceRelease", name: "a", token: 4 } },
  { at: 1, kind: "call", client: "c1", call: 5, op: { kind: "inspect", name: "a" } },
  {
    at: 1,
    kind: "return",
    call: 1,
    result: { kind: "acquired", grants: [{ name: "a", token: 4, slot: 2 }], session: null, request: null },
  },
  { at: 1, kind: "return", call: 1, result: { kind: "refused", code: "lock_held" } },
  { at: 1, kind: "return", call: 1, result: { kind: "gaveUp" } },
  { at: 1, kind: "return", call: 2, result: { kind: "released", how: "alreadyLost" } },
  { at: 1, kind: "return", call: 3, result: { kind: "closed" } },
  { at: 1, kind: "return", call: 4, result: { kind: "forced", ended: 2 } },
  { at: 1, kind: "return", call: 5, result: { kind: "inspected", holders: [{ token: 4, slot: null }] } },
  { at: 1, kind: "return", call: 5, result: { kind: "failed", code: "not_leader" } },
  { at: 1, kind: "return", call: 5, result: { kind: "unknown", code: "connection_closed" } },
  { at: 1, kind: "state", call: 1, state: "lost", reason: "expired", since: 0.75 },
  { at: 1, kind: "openSent", client: "c1", key: "k" },
  { at: 1, kind: "sessionOpened", client: "c1", session: 2, key: "k", ttlMs: 10_000 },
  { at: 1, kind: "sessionEnded", client: "c1", session: 2, reason: "expired", by: "client" },
  { at: 1, kind: "sent", client: "c1", session: 2, request: 1, call: null },
  { at: 1, kind: "told", client: "c1", session: 2, request: 1, outcome: { kind: "slotsDiffer", name: "a", slots: 2 } },
  { at: 1, kind: "keepaliveSent", client: "c1", session: 2, number: 1 },
  { at: 1, kind: "keepaliveReceived", node: "n1", term: 1, session: 2, number: 1 },
  { at: 1, kind: "keepaliveAcknowledged", node: "n1", term: 1, session: 2, number: 1 },
  { at: 1, kind: "keepaliveTold", client: "c1", session: 2, number: 1 },
  { at: 1, kind: "remaining", client: "c1", call: 1, session: 2, ms: 9_000.5 },
  { at: 1, kind: "committed", index: 1, term: 1, hash: "h", decidedInTerm: null, entry: { kind: "noop" } },
  { at: 1, kind: "committed", index: 2, term: 1, hash: "h", decidedInTerm: null, entry: { kind: "configuration" } },
  committed({ kind: "openSession", key: "k", ttlMs: 10_000 }),
  committed({ kind: "closeSession", ...numbered }),
  committed({
    kind: "acquire",
    ...numbered,
    names: ["a", "b"],
    mode: "exclusive",
    slots: 0,
    wait: false,
    lockDelayMs: 1,
    maxHoldMs: 2,
  }),
  committed({ kind: "release", ...numbered, of: 1, afterMs: 0 }),
  committed({ kind: "cancel", ...numbered, of: 1 }),
  committed({ kind: "setInfo", ...numbered, of: 1 }),
  committed({ kind: "expireSessions", ids: [2] }),
  committed({ kind: "suspectSessions", ids: [], eighths: 4 }),
  committed({ kind: "renewSuspects", ids: [2, 3] }),
  committed({ kind: "forceRelease", name: "a", token: 4, lockDelayMs: 0 }),
  committed({ kind: "endLockDelay", name: "a", index: 4 }),
  committed({ kind: "endHold", session: 2, of: 1, token: 4 }),
  committed({ kind: "setClusterVersion", version: 2 }),
  committed({ kind: "setSigningKey", id: "0123456789abcdef", replaces: null }),
  {
    at: 1,
    kind: "applied",
    node: "n1",
    index: 1,
    hash: "h",
    stateHash: null,
    effects: [
      { kind: "sessionOpened", key: "k", session: 2, ttlMs: 10_000, isNew: true },
      { kind: "outcome", session: 2, request: 1, outcome: { kind: "lost", reason: "forced", index: 9 } },
      { kind: "rejected", session: 2, request: 1, rejection: { kind: "sessionGone", reason: null } },
      { kind: "sessionEnded", session: 2, reason: "closed" },
      { kind: "silence", session: 2, count: 4, renewed: false },
      { kind: "expiryRefused", session: 2 },
      { kind: "holdBegan", session: 2, of: 1, token: 4, maxHoldMs: 0 },
      { kind: "lockDelayBegan", name: "a", index: 4, delayMs: 500 },
      { kind: "lockDelayEnded", name: "a", index: 4 },
      { kind: "forced", name: "a", token: 4, ended: 1 },
      { kind: "clusterVersion", version: 2 },
      { kind: "signingKeySet", id: "0123456789abcdef", replaces: null, isSet: true },
      { kind: "changed" },
    ],
  },
  { at: 1, kind: "installed", node: "n1", index: 1, stateHash: "s" },
  { at: 1, kind: "started", node: "n1", index: 0 },
  { at: 1, kind: "leader", node: "n1", term: 1 },
  { at: 1, kind: "serving", node: "n1", term: 1 },
  { at: 1, kind: "deposed", node: "n1", term: 1 },
  { at: 1, kind: "stall", node: "n1", ms: 300 },
  { at: 1, kind: "final", node: "n1", commitIndex: 1, lastApplied: 1, stateHash: "s", configuration: null },
  { at: 1, kind: "crashed", process: "n1" },
  { at: 1, kind: "paused", process: "c1" },
  { at: 1, kind: "resumed", process: "c1" },
  { at: 1, kind: "clockRate", process: "c1", rate: 1.001 },
  { at: 1, kind: "quorum", up: true },
  { at: 1, kind: "guardWrite", client: "c1", resource: "a", name: "a", slot: null, token: 4, accepted: null },
  { at: 1, kind: "fault", fault: "n1 is cut off" },
];

test("every kind of event goes through a line", () => {
  for (const [at, sample] of samples.entries()) assert.deepEqual(parseEvent(encodeEvent(sample), at + 2), sample);
});

test("a field that is missing or of another type is refused, by line and field", () => {
  let refused = 0;
  for (const sample of samples) {
    for (const field of leavesOf(sample, "")) {
      for (const wrong of wrongFor(sample, field)) {
        const line = encodeEvent(withField(sample, field, wrong));
        const isRight = (error: unknown): boolean => {
          return (
            error instanceof HistoryError && error.line === 7 && field.startsWith(error.field) && error.problem !== ""
          );
        };
        assert.throws(() => parseEvent(line, 7), isRight, `${line} with ${field}`);
        refused += 1;
      }
    }
  }
  assert.ok(refused > 600, `${refused} lines`);
});

test("words of closed lists are refused when they are others", () => {
  const closed = ["kind", "mode", "how", "state", "by", "result.code", "reason"];
  for (const [at, field] of closed.entries()) {
    const index = [0, 0, 8, 14, 17, 6, 41][at] ?? 0;
    const sample = samples[index];
    assert.ok(sample !== undefined);
    const path = leavesOf(sample, "").find(
      (leaf) => leaf.endsWith(field) && (field !== "reason" || leaf.includes("effects")),
    );
    assert.ok(path !== undefined, field);
    assert.throws(() => parseEvent(encodeEvent(withField(sample, path, "no such word")), 7), /must be one of/);
  }
});

function leavesOf(value: unknown, path: string): string[] {
  if (typeof value !== "object" || value === null) return [path];
  return Object.entries(value).flatMap(([name, item]) => {
    return leavesOf(item, Array.isArray(value) ? `${path}[${name}]` : path === "" ? name : `${path}.${name}`);
  });
}

function wrongFor(sample: HistoryEvent, field: string): unknown[] {
  const isTime = field === "at" || field === "since";
  const value = field.split(/[.[\]]+/).reduce<unknown>((at, name) => {
    return name === "" ? at : (at as Record<string, unknown>)[name];
  }, sample);
  const missing = field.endsWith("]") ? [] : [undefined];
  return [...missing, { an: "object" }, ...(typeof value === "number" && !isTime ? [-1.5, "7"] : [[]])];
}

function withField(sample: HistoryEvent, field: string, value: unknown): HistoryEvent {
  const copy = structuredClone(sample);
  const names = field.split(/[.[\]]+/).filter((name) => name !== "");
  let at: Record<string, unknown> = copy as unknown as Record<string, unknown>;
  for (const name of names.slice(0, -1)) at = at[name] as Record<string, unknown>;
  at[names.at(-1) ?? ""] = value;
  return copy;
}

test("unknown fields are passed over, unknown kinds are not", () => {
  assert.doesNotThrow(() => parseEvent('{"at":1,"kind":"quorum","up":true,"more":1}', 2));
  assert.throws(
    () => parseEvent('{"at":1,"kind":"dance"}', 2),
    /^HistoryError: line 2, kind: must be one of call, return/,
  );
  assert.throws(() => parseEvent('{"at":1,"kind":"__proto__"}', 2), /line 2, kind/);
});

test("a file begins with its header", () => {
  const history: History = { ...header, events: samples };
  assert.deepEqual(parseHistory(encodeHistory(history)), history);
  assert.deepEqual(parseHistory(`\n${encodeHeader(header)}\n\n`), { ...header, events: [] });
  assert.throws(() => parseHistory(""), /line 1: a history begins with a header/);
  assert.throws(() => parseHeader('{"version":2}', 1), /line 1, version: must be one of 1/);
  assert.throws(() => parseHeader('{"version":1,"origin":"","nodes":"n1"}', 1), /line 1, nodes: must be a list/);
});

test("the line that is no history is named", () => {
  const lines = [encodeHeader(header), '{"at":1,"kind":"quorum","up":true}', "", '{"at":1,"kind":"quorum"'];
  assert.throws(
    () => parseHistory(lines.join("\n")),
    (error) => error instanceof HistoryError && error.line === 4 && error.field === "" && /JSON/.test(error.problem),
  );
  for (const line of ["[]", "null", "7", '"text"']) {
    assert.throws(() => parseEvent(line, 3), /line 3: must be an object/);
  }
  const call = { at: 1, kind: "call", client: "c", call: 1, op: { kind: "acquire", names: [], mode: "exclusive" } };
  assert.throws(() => parseEvent(JSON.stringify(call), 3), /line 3, op.names: must have at least 1 items/);
  assert.throws(() => parseEvent('{"at":null,"kind":"quorum","up":true}', 3), /line 3, at: must be a finite number/);
  assert.throws(
    () => parseEvent('{"at":1,"kind":"clockRate","process":"c","rate":0}', 3),
    /rate: must be a finite number above 0/,
  );
});
