/**
 * One value of every kind of command and of what clients and nodes say to one another, for golden bytes and as seeds of mutations. The Record
 * types demand that none is forgotten.
 */
import type { Command, LockView, Outcome, Rejection } from "@holdfast/lock";
import type { ClientMessage, Query, QueryResult, Refusal, ServerMessage } from "../src/index.js";

const key = "00112233445566778899aabbccddeeff";
export const n1 = { id: "n1", instance: "i-aa", peer: "10.0.0.1:7201", client: "10.0.0.1:7101" };
export const n2 = { id: "n2", instance: "i-bb", peer: "10.0.0.2:7201", client: "10.0.0.2:7101" };
export const n3 = { id: "n3", instance: "i-cc", peer: "10.0.0.3:7201", client: "10.0.0.3:7101" };
const request = { session: 70_000, request: 300, settled: 299, seen: [301, 305] };
/** Above 2^32: travels as a double. */
export const large = 2 ** 40 + 1;

const newKey = { id: "0123456789abcdef", publicKey: Buffer.alloc(32, 255).toString("base64url") };
const oldKey = { id: "fedcba9876543210", publicKey: Buffer.alloc(32, 1).toString("base64url") };

export const commands: Record<Command["kind"], Command> = {
  openSession: { kind: "openSession", key, ttlMs: 10_000, info: "host-a pid 4711" },
  closeSession: { kind: "closeSession", ...request },
  acquire: {
    kind: "acquire",
    ...request,
    names: ["acct:1", "acct:2", "żółw"],
    mode: "shared",
    slots: 0,
    wait: true,
    lockDelayMs: 5_000,
    maxHoldMs: 60_000,
    info: "",
  },
  release: { kind: "release", ...request, of: 299, afterMs: 250 },
  cancel: { kind: "cancel", ...request, of: 299 },
  setInfo: { kind: "setInfo", ...request, of: 299, info: "step 2 of 3" },
  expireSessions: { kind: "expireSessions", ids: [1, 200, 70_000, large] },
  suspectSessions: { kind: "suspectSessions", ids: [9], eighths: 4 },
  renewSuspects: { kind: "renewSuspects", ids: [9, 10] },
  forceRelease: { kind: "forceRelease", name: "doc:42", token: large, principal: "ada", lockDelayMs: 1_000 },
  endLockDelay: { kind: "endLockDelay", name: "doc:42", index: 123_456 },
  endHold: { kind: "endHold", session: 7, of: 8, token: 9 },
  setClusterVersion: { kind: "setClusterVersion", version: 2 },
  setSigningKey: {
    kind: "setSigningKey",
    ...newKey,
    seed: Buffer.alloc(32, 7).toString("base64url"),
    replaces: oldKey.id,
    principal: "ada",
  },
};

/** A semaphore's acquire, beside the one above. */
export const slotAcquire: Command = {
  kind: "acquire",
  session: 1,
  request: 1,
  settled: 1,
  seen: [],
  names: ["gpu"],
  mode: "slot",
  slots: 4,
  wait: false,
  lockDelayMs: 0,
  maxHoldMs: 0,
  info: "train",
};

export const queries: Record<Query["kind"], Query> = {
  inspect: { kind: "inspect", name: "doc:42" },
  list: { kind: "list", prefix: "doc:", after: "", limit: 100 },
  sessions: { kind: "sessions", limit: 10 },
  status: { kind: "status" },
  members: { kind: "members" },
  sequencer: { kind: "sequencer", session: 70_000, key, of: 3, name: "doc:42" },
  check: { kind: "check", sequencer: "holdfast1.0123456789abcdef.ZG9jOjQy.exclusive.-.4711.AAAA" },
  keys: { kind: "keys" },
};

const queryMessages = Object.values(queries).map((query, at): ClientMessage => ({ kind: "query", id: at, query }));

export const clientMessages: Record<ClientMessage["kind"], readonly ClientMessage[]> = {
  hello: [
    {
      kind: "hello",
      protocol: 1,
      features: ["slots", "watch"],
      clusterId: null,
      seenIndex: 0,
      info: "host-a pid 4711",
    },
    { kind: "hello", protocol: 1, features: [], clusterId: "c-1", seenIndex: large, info: "" },
  ],
  command: [{ kind: "command", payload: new Uint8Array([0x94, 1, 2, 3, 4]) }],
  resume: [{ kind: "resume", session: 70_000, key }],
  keepalive: [{ kind: "keepalive", session: 70_000, number: 12 }],
  query: queryMessages,
  forceRelease: [{ kind: "forceRelease", id: 3, name: "doc:42", token: large, principal: "ada", lockDelayMs: 60_000 }],
  transfer: [
    { kind: "transfer", id: 4, to: "n2" },
    { kind: "transfer", id: 5, to: null },
  ],
  finalize: [{ kind: "finalize", id: 6 }],
  rotateKey: [{ kind: "rotateKey", id: 12, principal: "ada" }],
  changeMembers: [
    { kind: "changeMembers", id: 7, add: [n3], promote: [], remove: [], isForced: false },
    { kind: "changeMembers", id: 8, add: [], promote: ["n3"], remove: ["n1", "n2"], isForced: true },
  ],
  watch: [
    { kind: "watch", id: 9, name: "doc:42", isPrefix: false, after: null },
    { kind: "watch", id: 10, name: "doc:", isPrefix: true, after: large },
    { kind: "watch", id: 11, name: "", isPrefix: true, after: 0 },
  ],
  unwatch: [{ kind: "unwatch", id: 9 }],
};

const holder = { session: 70_000, request: 3, token: large, slot: null, mode: "exclusive", info: "host-a" } as const;
const grants = [
  { name: "doc:42", token: large, slot: null },
  { name: "gpu", token: 12, slot: 0 },
];

export const outcomes: Record<Outcome["kind"], readonly Outcome[]> = {
  waiting: [
    { kind: "waiting", ahead: 2, holder },
    { kind: "waiting", ahead: 0, holder: null },
  ],
  granted: [{ kind: "granted", grants, maxHoldMs: 60_000 }],
  lost: [
    { kind: "lost", reason: "expired", index: 1 },
    { kind: "lost", reason: "forced", index: 2 },
    { kind: "lost", reason: "max_hold", index: 3 },
    { kind: "lost", reason: "closed", index: 4 },
    { kind: "lost", reason: "restored", index: large },
  ],
  released: [{ kind: "released" }],
  cancelled: [{ kind: "cancelled" }],
  alreadyGranted: [{ kind: "alreadyGranted", grants }],
  notHeld: [{ kind: "notHeld", holders: [holder, { ...holder, slot: 3, mode: "slot" }] }],
  infoSet: [{ kind: "infoSet" }],
  sessionClosed: [{ kind: "sessionClosed" }],
  lockHeld: [
    { kind: "lockHeld", name: "doc:42", holder },
    { kind: "lockHeld", name: "doc:42", holder: null },
  ],
  lockDelayed: [{ kind: "lockDelayed", name: "doc:42", delayMs: 5_000 }],
  slotsDiffer: [{ kind: "slotsDiffer", name: "gpu", slots: 4 }],
};

export const rejections: Record<Rejection["kind"], readonly Rejection[]> = {
  sessionGone: [
    { kind: "sessionGone", reason: "expired" },
    { kind: "sessionGone", reason: null },
  ],
  settled: [{ kind: "settled" }],
  tooManyRequests: [{ kind: "tooManyRequests" }],
};

const leader = { id: "n1", client: "127.0.0.1:7101" };

export const refusals: Record<Refusal["code"], readonly Refusal[]> = {
  not_leader: [
    { code: "not_leader", leader },
    { code: "not_leader", leader: null },
  ],
  no_quorum: [{ code: "no_quorum" }],
  overloaded: [{ code: "overloaded" }],
  unknown_outcome: [{ code: "unknown_outcome" }],
  session_gone: [
    { code: "session_gone", reason: "expired" },
    { code: "session_gone", reason: null },
  ],
  invalid_argument: [{ code: "invalid_argument", argument: "names[2]", problem: "is empty" }],
  incompatible: [{ code: "incompatible", problem: "protocol 2 is not known" }],
  unauthorized: [{ code: "unauthorized" }],
  change_refused: [
    { code: "change_refused", reason: "would_lose_quorum", members: ["n2", "n3"] },
    { code: "change_refused", reason: "not_ready", members: [] },
  ],
};

const lock: LockView = {
  name: "doc:42",
  mode: "exclusive",
  slots: 0,
  holders: [holder],
  holderCount: 1,
  waiters: [{ session: 5, request: 6, mode: "exclusive", info: "b", names: ["a", "doc:42"], reserves: true }],
  waiterCount: 17,
  delays: [{ index: 3, delayMs: 10, slot: null }],
};

export const results: Record<QueryResult["kind"], readonly QueryResult[]> = {
  lock: [
    { kind: "lock", index: 9, lock },
    { kind: "lock", index: 9, lock: null },
  ],
  locks: [
    {
      kind: "locks",
      index: 10,
      locks: [
        lock,
        { ...lock, name: "free", mode: null, holders: [], holderCount: 0, waiters: [], waiterCount: 0, delays: [] },
      ],
      more: true,
    },
  ],
  sessions: [
    {
      kind: "sessions",
      index: 11,
      sessions: [{ id: 70_000, ttlMs: 10_000, info: "x", silence: 2, holds: 1, waits: 0 }],
    },
  ],
  status: [
    {
      kind: "status",
      status: {
        id: "n1",
        role: "leader",
        term: 3,
        leader: "n1",
        commitIndex: 100,
        lastApplied: 99,
        lastIndex: large,
        snapshotIndex: 50,
        sessions: 2,
        locks: 3,
        clusterId: "c-1",
        version: "0.1.0",
        uptimeMs: 12_345,
        nodes: [leader],
        clusterVersion: 2,
        versions: { min: 1, max: 300 },
      },
    },
  ],
  members: [
    {
      kind: "members",
      index: large,
      members: {
        clusterId: "c-1",
        leader: "n1",
        members: [
          { ...n1, role: "voter", isUp: true, percent: 100, isCaughtUp: true, versions: { min: 1, max: 2 } },
          { ...n2, role: "outgoing", isUp: false, percent: 0, isCaughtUp: false, versions: null },
          { ...n3, role: "learner", isUp: true, percent: 62, isCaughtUp: false, versions: { min: 1, max: 1 } },
        ],
        removed: ["n0"],
        isChanging: true,
      },
    },
  ],
  sequencer: [
    { kind: "sequencer", index: large, sequencer: "holdfast1.0123456789abcdef.ZG9jOjQy.exclusive.-.4711.AAAA" },
    { kind: "sequencer", index: 12, sequencer: null },
  ],
  check: [
    { kind: "check", index: large, verdict: "current", token: 4_711 },
    { kind: "check", index: 12, verdict: "over", token: large },
    { kind: "check", index: 12, verdict: "forged", token: null },
    { kind: "check", index: 12, verdict: "unknown_key", token: null },
    { kind: "check", index: 12, verdict: "malformed", token: null },
  ],
  keys: [
    { kind: "keys", index: 12, keys: [] },
    {
      kind: "keys",
      index: large,
      keys: [
        { ...newKey, since: large },
        { ...oldKey, since: 2 },
      ],
    },
  ],
};

const outcomeMessages = Object.values(outcomes)
  .flat()
  .map((outcome): ServerMessage => ({ kind: "outcome", session: 70_000, request: 3, index: large, outcome }));
const { change_refused: changeRefusals, ...otherRefusals } = refusals;
const refusedMessages = Object.values(otherRefusals)
  .flat()
  .map((refusal): ServerMessage => ({ kind: "refused", session: 70_000, request: 3, id: null, key: null, refusal }));

export const serverMessages: Record<ServerMessage["kind"], readonly ServerMessage[]> = {
  welcome: [
    { kind: "welcome", protocol: 1, features: ["slots"], node: "n2", clusterId: "c-1", leader, nodes: [leader] },
  ],
  leader: [
    { kind: "leader", leader },
    { kind: "leader", leader: null },
  ],
  sessionOpened: [{ kind: "sessionOpened", key, session: 70_000, ttlMs: 10_000 }],
  resumed: [
    {
      kind: "resumed",
      session: 70_000,
      ttlMs: 10_000,
      holds: [{ request: 3, grants, maxHoldMs: 0 }],
      waiting: [4, 5],
      outcomes: [{ request: 2, outcome: { kind: "released" } }],
    },
  ],
  acknowledged: [{ kind: "acknowledged", session: 70_000, number: 12 }],
  outcome: outcomeMessages,
  rejected: Object.values(rejections)
    .flat()
    .map((rejection) => ({ kind: "rejected", session: 70_000, request: 3, rejection })),
  sessionEnded: [
    { kind: "sessionEnded", session: 70_000, reason: "forced" },
    { kind: "sessionEnded", session: 70_000, reason: null },
  ],
  superseded: [{ kind: "superseded", session: 70_000 }],
  answer: Object.values(results)
    .flat()
    .map((result, at) => ({ kind: "answer", id: at, result })),
  forced: [{ kind: "forced", id: 3, ended: 2, holders: 1 }],
  transferred: [
    { kind: "transferred", id: 4, leader },
    { kind: "transferred", id: 4, leader: null },
  ],
  finalized: [{ kind: "finalized", id: 6, version: 2 }],
  keyRotated: [{ kind: "keyRotated", id: 12, key: newKey.id }],
  nodes: [{ kind: "nodes", nodes: [leader, { id: "n4", client: "[::1]:7104" }] }],
  membersChanged: [{ kind: "membersChanged", id: 7, index: large }],
  watching: [
    { kind: "watching", id: 9, index: large, isGap: true },
    { kind: "watching", id: 9, index: 0, isGap: false },
  ],
  changes: [
    {
      kind: "changes",
      id: 9,
      index: large,
      changes: [
        { name: "doc:42", change: "released", token: 70_000, slot: null },
        { name: "doc:42", change: "granted", token: large, slot: null },
        { name: "gpu", change: "lost", token: 70_001, slot: 3 },
        { name: "doc:43", change: "delayEnded", token: 5, slot: null },
        { name: "doc:44", change: "info", token: 6, slot: null },
      ],
    },
  ],
  refusedRun: [
    { kind: "refusedRun", session: 70_000, from: 3, to: 4_098, refusal: { code: "overloaded" } },
    { kind: "refusedRun", session: 1, from: large, to: large, refusal: { code: "not_leader", leader } },
  ],
  refused: [
    ...refusedMessages,
    { kind: "refused", session: null, request: null, id: 7, key: null, refusal: { code: "overloaded" } },
    { kind: "refused", session: null, request: null, id: null, key, refusal: { code: "overloaded" } },
    ...changeRefusals.map(
      (refusal): ServerMessage => ({ kind: "refused", session: null, request: null, id: 8, key: null, refusal }),
    ),
  ],
};

export function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("hex");
}

export function bytesOf(hex: string): Uint8Array {
  return new Uint8Array(Buffer.from(hex, "hex"));
}
