/** Random values of what clients and nodes exchange, up to their limits' order of magnitude. */
import type {
  Command,
  Grant,
  HolderView,
  LockView,
  LossReason,
  Mode,
  Outcome,
  Rejection,
  ResumeView,
  SessionRequest,
  SessionView,
  VersionRange,
  WaiterView,
} from "@holdfast/lock";
import type { Member } from "@holdfast/raft";
import fc from "fast-check";
import type { Arbitrary } from "fast-check";
import type {
  ClientMessage,
  MemberRole,
  MemberView,
  NodeAddress,
  NodeStatus,
  Query,
  QueryResult,
  Refusal,
  SequencerVerdict,
  ServerMessage,
} from "../src/index.js";

/** With Object's prototype, as decoded values have it. */
export function record<T>(model: { [Key in keyof T]: Arbitrary<T[Key]> }): Arbitrary<T> {
  return fc.record<T>(model, { noNullPrototype: true });
}

/** Small ones, those around each width of msgpack, and all others. */
export const count: Arbitrary<number> = fc.oneof(
  fc.nat(300),
  fc.constantFrom(0x7f, 0x80, 0xff, 0x100, 0xffff, 0x10000, 0xffffffff, 0x100000000, Number.MAX_SAFE_INTEGER),
  fc.maxSafeNat(),
);
const positive = count.map((value) => Math.max(1, value));
export const uint32 = fc.nat(0xffffffff);
export const chunkOfBytes = fc.uint8Array({ maxLength: 300 }).map((bytes) => new Uint8Array(bytes));
export const flag = fc.boolean();

/** Anything that the wire carries: every scalar value but controls, and no byte order mark in front. */
export function text(bytesMin: number, bytesMax: number): Arbitrary<string> {
  return fc
    .string({ unit: "binary", maxLength: Math.min(bytesMax, 120) })
    .map((value) => value.replaceAll(/\p{Cc}/gu, "·").replace(/^\uFEFF+/u, "b"))
    .filter((value) => {
      const bytes = Buffer.byteLength(value);
      return bytes >= bytesMin && bytes <= bytesMax;
    });
}

export const info = text(0, 1_024);
const name = text(1, 512);
export const id = text(1, 128);
const key = fc.uint8Array({ minLength: 16, maxLength: 16 }).map((bytes) => Buffer.from(bytes).toString("hex"));

export function nullable<T>(arbitrary: Arbitrary<T>): Arbitrary<T | null> {
  return fc.option(arbitrary, { nil: null });
}

const numbers = fc.array(positive, { maxLength: 12 });

export const versions: Arbitrary<VersionRange> = fc
  .tuple(positive, positive)
  .map(([a, b]) => ({ min: Math.min(a, b), max: Math.max(a, b) }));

const request: Arbitrary<SessionRequest> = record({
  session: positive,
  request: positive,
  settled: count,
  seen: numbers,
});

function withRequest<T extends object>(fields: Arbitrary<T>): Arbitrary<T & SessionRequest> {
  return fc.tuple(fields, request).map(([own, shared]) => ({ ...own, ...shared }));
}

/** Sorted by code unit, as the default sort does. */
const sortedNames = fc.uniqueArray(name, { minLength: 1, maxLength: 8 }).map((names) => names.sort());

const acquire = fc.oneof(
  record({
    kind: fc.constant("acquire" as const),
    names: sortedNames,
    mode: fc.constantFrom<Mode>("exclusive", "shared"),
    slots: fc.constant(0),
    wait: flag,
    lockDelayMs: count,
    maxHoldMs: count,
    info,
  }),
  record({
    kind: fc.constant("acquire" as const),
    names: name.map((only) => [only]),
    mode: fc.constant<Mode>("slot"),
    slots: positive,
    wait: flag,
    lockDelayMs: count,
    maxHoldMs: count,
    info,
  }),
);

const keyId = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map((id) => id.toString(16).padStart(16, "0"));
const keyBytes = fc
  .uint8Array({ minLength: 32, maxLength: 32 })
  .map((bytes) => Buffer.from(bytes).toString("base64url"));

export const command: Arbitrary<Command> = fc.oneof(
  record({ kind: fc.constant("openSession" as const), key, ttlMs: positive, info }),
  withRequest(record({ kind: fc.constant("closeSession" as const) })),
  withRequest(acquire),
  withRequest(record({ kind: fc.constant("release" as const), of: positive, afterMs: count })),
  withRequest(record({ kind: fc.constant("cancel" as const), of: positive })),
  withRequest(record({ kind: fc.constant("setInfo" as const), of: positive, info })),
  record({ kind: fc.constant("expireSessions" as const), ids: numbers }),
  record({ kind: fc.constant("suspectSessions" as const), ids: numbers, eighths: fc.integer({ min: 1, max: 8 }) }),
  record({ kind: fc.constant("renewSuspects" as const), ids: numbers }),
  record({ kind: fc.constant("forceRelease" as const), name, token: positive, principal: info, lockDelayMs: count }),
  record({ kind: fc.constant("endLockDelay" as const), name, index: positive }),
  record({ kind: fc.constant("endHold" as const), session: positive, of: positive, token: positive }),
  record({ kind: fc.constant("setClusterVersion" as const), version: positive }),
  record({
    kind: fc.constant("setSigningKey" as const),
    id: keyId,
    publicKey: keyBytes,
    seed: keyBytes,
    replaces: nullable(keyId),
    principal: info,
  }),
);

const limit = fc.integer({ min: 1, max: 1_000 });
const query: Arbitrary<Query> = fc.oneof(
  record({ kind: fc.constant("inspect" as const), name }),
  record({ kind: fc.constant("list" as const), prefix: text(0, 512), after: text(0, 512), limit }),
  record({ kind: fc.constant("sessions" as const), limit }),
  fc.constant({ kind: "status" as const }),
  fc.constant({ kind: "members" as const }),
  record({ kind: fc.constant("sequencer" as const), session: positive, key, of: positive, name }),
  record({ kind: fc.constant("check" as const), sequencer: text(0, 1_024) }),
  fc.constant({ kind: "keys" as const }),
);

export const member: Arbitrary<Member> = record({ id, instance: id, peer: text(1, 200), client: text(1, 200) });

export const clientMessage: Arbitrary<ClientMessage> = fc.oneof(
  record({
    kind: fc.constant("hello" as const),
    protocol: count,
    features: fc.array(id, { maxLength: 5 }),
    clusterId: nullable(id),
    seenIndex: count,
    info,
  }),
  record({ kind: fc.constant("command" as const), payload: chunkOfBytes }),
  record({ kind: fc.constant("resume" as const), session: positive, key }),
  record({ kind: fc.constant("keepalive" as const), session: positive, number: count }),
  record({ kind: fc.constant("query" as const), id: count, query }),
  record({
    kind: fc.constant("forceRelease" as const),
    id: count,
    name,
    token: positive,
    principal: text(0, 256),
    lockDelayMs: fc.nat(60_000),
  }),
  record({ kind: fc.constant("transfer" as const), id: count, to: nullable(id) }),
  record({ kind: fc.constant("finalize" as const), id: count }),
  record({ kind: fc.constant("rotateKey" as const), id: count, principal: text(0, 256) }),
  record({
    kind: fc.constant("changeMembers" as const),
    id: count,
    add: fc.array(member, { maxLength: 3 }),
    promote: fc.array(id, { maxLength: 3 }),
    remove: fc.array(id, { maxLength: 3 }),
    isForced: flag,
  }),
  record({ kind: fc.constant("watch" as const), id: count, name, isPrefix: flag, after: nullable(count) }),
  record({ kind: fc.constant("unwatch" as const), id: count }),
);

const mode = fc.constantFrom<Mode>("exclusive", "shared", "slot");
const reason = fc.constantFrom<LossReason>("expired", "forced", "max_hold", "closed", "restored");
const slot = nullable(fc.nat(1_023));
const grants: Arbitrary<Grant[]> = fc.array(record({ name, token: positive, slot }), { maxLength: 5 });
const holder: Arbitrary<HolderView> = record({
  session: positive,
  request: positive,
  token: positive,
  slot,
  mode,
  info,
});
const holders = fc.array(holder, { maxLength: 4 });

const outcome: Arbitrary<Outcome> = fc.oneof(
  record({ kind: fc.constant("waiting" as const), ahead: count, holder: nullable(holder) }),
  record({ kind: fc.constant("granted" as const), grants, maxHoldMs: count }),
  record({ kind: fc.constant("lost" as const), reason, index: count }),
  fc.constant({ kind: "released" as const }),
  fc.constant({ kind: "cancelled" as const }),
  record({ kind: fc.constant("alreadyGranted" as const), grants }),
  record({ kind: fc.constant("notHeld" as const), holders }),
  fc.constant({ kind: "infoSet" as const }),
  fc.constant({ kind: "sessionClosed" as const }),
  record({ kind: fc.constant("lockHeld" as const), name, holder: nullable(holder) }),
  record({ kind: fc.constant("lockDelayed" as const), name, delayMs: count }),
  record({ kind: fc.constant("slotsDiffer" as const), name, slots: count }),
);

const rejection: Arbitrary<Rejection> = fc.oneof(
  record({ kind: fc.constant("sessionGone" as const), reason: nullable(reason) }),
  fc.constant({ kind: "settled" as const }),
  fc.constant({ kind: "tooManyRequests" as const }),
);

const address: Arbitrary<NodeAddress> = record({ id, client: text(1, 200) });
const leader = nullable(address);

const waiter: Arbitrary<WaiterView> = record({
  session: positive,
  request: positive,
  mode,
  info,
  names: fc.array(name, { maxLength: 3 }),
  reserves: flag,
});
const lock: Arbitrary<LockView> = record({
  name,
  mode: nullable(mode),
  slots: count,
  holders,
  waiters: fc.array(waiter, { maxLength: 3 }),
  waiterCount: count,
  holderCount: count,
  delays: fc.array(record({ index: positive, delayMs: count, slot }), { maxLength: 3 }),
});
const session: Arbitrary<SessionView> = record({
  id: positive,
  ttlMs: count,
  info,
  silence: fc.nat(8),
  holds: count,
  waits: count,
});
const status: Arbitrary<NodeStatus> = record({
  id,
  role: id,
  term: count,
  leader: nullable(id),
  commitIndex: count,
  lastApplied: count,
  lastIndex: count,
  snapshotIndex: count,
  sessions: count,
  locks: count,
  clusterId: text(0, 128),
  version: id,
  uptimeMs: count,
  nodes: fc.array(address, { maxLength: 5 }),
  clusterVersion: positive,
  versions,
});
const memberView: Arbitrary<MemberView> = fc
  .tuple(
    member,
    record({
      role: fc.constantFrom<MemberRole>("voter", "outgoing", "learner"),
      isUp: flag,
      percent: fc.nat(100),
      isCaughtUp: flag,
      versions: nullable(versions),
    }),
  )
  .map(([node, view]) => ({ ...node, ...view }));
const members = record({
  clusterId: info,
  leader: info,
  members: fc.array(memberView, { maxLength: 3 }),
  removed: fc.array(info, { maxLength: 3 }),
  isChanging: flag,
});

const result: Arbitrary<QueryResult> = fc.oneof(
  record({ kind: fc.constant("lock" as const), index: count, lock: nullable(lock) }),
  record({ kind: fc.constant("locks" as const), index: count, locks: fc.array(lock, { maxLength: 3 }), more: flag }),
  record({ kind: fc.constant("sessions" as const), index: count, sessions: fc.array(session, { maxLength: 3 }) }),
  record({ kind: fc.constant("status" as const), status }),
  record({ kind: fc.constant("members" as const), index: count, members }),
  record({ kind: fc.constant("sequencer" as const), index: count, sequencer: nullable(text(1, 1_024)) }),
  record({
    kind: fc.constant("check" as const),
    index: count,
    verdict: fc.constantFrom<SequencerVerdict>("current", "over", "forged", "unknown_key", "malformed"),
    token: nullable(positive),
  }),
  record({
    kind: fc.constant("keys" as const),
    index: count,
    keys: fc.array(record({ id: keyId, publicKey: keyBytes, since: positive }), { maxLength: 8 }),
  }),
);
const resume: Arbitrary<ResumeView> = record({
  session: positive,
  ttlMs: count,
  holds: fc.array(record({ request: positive, grants, maxHoldMs: count }), { maxLength: 3 }),
  waiting: numbers,
  outcomes: fc.array(record({ request: positive, outcome }), { maxLength: 3 }),
});

const refusal: Arbitrary<Refusal> = fc.oneof(
  record({ code: fc.constant("not_leader" as const), leader }),
  record({
    code: fc.constantFrom(
      "no_quorum" as const,
      "overloaded" as const,
      "unknown_outcome" as const,
      "unauthorized" as const,
    ),
  }),
  record({ code: fc.constant("session_gone" as const), reason: nullable(info) }),
  record({ code: fc.constant("invalid_argument" as const), argument: info, problem: info }),
  record({ code: fc.constant("incompatible" as const), problem: info }),
  record({
    code: fc.constant("change_refused" as const),
    reason: fc.constantFrom("not_ready" as const, "removed_id" as const, "would_lose_quorum" as const),
    members: fc.array(info, { maxLength: 3 }),
  }),
);

export const serverMessage: Arbitrary<ServerMessage> = fc.oneof(
  record({
    kind: fc.constant("welcome" as const),
    protocol: count,
    features: fc.array(id, { maxLength: 5 }),
    node: id,
    clusterId: id,
    leader,
    nodes: fc.array(address, { maxLength: 5 }),
  }),
  record({ kind: fc.constant("leader" as const), leader }),
  record({ kind: fc.constant("sessionOpened" as const), key, session: positive, ttlMs: positive }),
  resume.map((view) => ({ kind: "resumed" as const, ...view })),
  record({ kind: fc.constant("acknowledged" as const), session: positive, number: count }),
  record({ kind: fc.constant("outcome" as const), session: positive, request: positive, index: count, outcome }),
  record({ kind: fc.constant("rejected" as const), session: positive, request: positive, rejection }),
  record({ kind: fc.constant("sessionEnded" as const), session: positive, reason: nullable(reason) }),
  record({ kind: fc.constant("superseded" as const), session: positive }),
  record({ kind: fc.constant("answer" as const), id: count, result }),
  record({ kind: fc.constant("forced" as const), id: count, ended: count, holders: count }),
  record({ kind: fc.constant("transferred" as const), id: count, leader }),
  record({ kind: fc.constant("finalized" as const), id: count, version: positive }),
  record({ kind: fc.constant("keyRotated" as const), id: count, key: keyId }),
  record({ kind: fc.constant("nodes" as const), nodes: fc.array(address, { maxLength: 5 }) }),
  record({ kind: fc.constant("membersChanged" as const), id: count, index: positive }),
  record({ kind: fc.constant("watching" as const), id: count, index: count, isGap: fc.boolean() }),
  record({
    kind: fc.constant("changes" as const),
    id: count,
    index: positive,
    changes: fc.array(
      record({
        name,
        change: fc.constantFrom(
          "granted" as const,
          "released" as const,
          "lost" as const,
          "delayEnded" as const,
          "info" as const,
        ),
        token: positive,
        slot: nullable(count),
      }),
      { maxLength: 4 },
    ),
  }),
  fc
    .tuple(positive, fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER - 4_095 }), fc.nat(4_095), refusal)
    .map(([session, from, more, said]) => ({
      kind: "refusedRun" as const,
      session,
      from,
      to: from + more,
      refusal: said,
    })),
  record({
    kind: fc.constant("refused" as const),
    session: nullable(positive),
    request: nullable(positive),
    id: nullable(count),
    key: nullable(key),
    refusal,
  }),
);
