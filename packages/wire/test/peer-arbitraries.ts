/** Random values of what nodes exchange and store. */
import type {
  Configuration,
  Entry,
  EntryKind,
  HardState,
  Index,
  LogBase,
  Member,
  Message,
  Position,
  Term,
} from "@holdfast/raft";
import fc from "fast-check";
import type { Arbitrary } from "fast-check";
import type { PeerFrame, PeerRefusalCode } from "../src/index.js";
import {
  chunkOfBytes,
  count,
  flag,
  id,
  info,
  member,
  nullable,
  record,
  text,
  uint32,
  versions,
} from "./arbitraries.js";

const term = count as Arbitrary<Term>;
const index = count as Arbitrary<Index>;
const position: Arbitrary<Position> = record({ term, index });

function membersOf(maxLength: number): Arbitrary<Member[]> {
  return fc.uniqueArray(member, { maxLength, selector: (each) => each.id });
}

export const configuration: Arbitrary<Configuration> = record({
  voters: membersOf(5),
  outgoing: membersOf(3),
  learners: membersOf(3),
  removed: fc.array(id, { maxLength: 5 }),
});

export const base: Arbitrary<LogBase> = record({ position, chain: uint32, configuration });

export const hardState: Arbitrary<HardState> = record({ term, votedFor: nullable(id) });

/** Entries without gaps behind `previous`. */
export function entriesAfter(previous: number, minLength: number): Arbitrary<Entry[]> {
  const entry = record({
    term,
    kind: fc.constantFrom<EntryKind>("noop", "command", "configuration"),
    payload: chunkOfBytes,
    chain: uint32,
  });
  return fc
    .array(entry, { minLength, maxLength: 10 })
    .map((entries) => entries.map((each, at) => ({ index: (previous + 1 + at) as Index, ...each })));
}

/** Leaves room for the entries behind it. */
const previousIndex = fc.nat(2 ** 31 - 1).map((value) => value * 2 ** 20);

export const entries: Arbitrary<Entry[]> = previousIndex.chain((previous) => entriesAfter(previous, 1));

const append: Arbitrary<Message> = previousIndex.chain((previous) =>
  record({
    kind: fc.constant("append" as const),
    term,
    previous: record({ term, index: fc.constant(previous as Index) }),
    previousChain: uint32,
    entries: entriesAfter(previous, 0),
    commitIndex: index,
  }),
);

export const raftMessage: Arbitrary<Message> = fc.oneof(
  append,
  record({ kind: fc.constant("preVote" as const), term, last: position }),
  record({ kind: fc.constant("preVoteAnswer" as const), term, granted: flag }),
  record({ kind: fc.constant("vote" as const), term, last: position, transfer: flag }),
  record({ kind: fc.constant("voteAnswer" as const), term, granted: flag }),
  record({ kind: fc.constant("appendAccepted" as const), term, matchIndex: index }),
  record({ kind: fc.constant("appendRejected" as const), term, rejected: index, hint: position }),
  record({ kind: fc.constant("heartbeat" as const), term, commitIndex: index, round: count }),
  record({ kind: fc.constant("heartbeatAnswer" as const), term, round: count }),
  record({ kind: fc.constant("snapshotChunk" as const), term, base, chunk: count, bytes: chunkOfBytes, done: flag }),
  record({ kind: fc.constant("snapshotAnswer" as const), term, snapshotIndex: index, next: count, installed: flag }),
  record({ kind: fc.constant("timeoutNow" as const), term }),
);

const hello = record({
  kind: fc.constant("hello" as const),
  protocol: count,
  cluster: id,
  from: id,
  to: id,
  instance: id,
  clusterId: nullable(id),
  boot: count,
  term: nullable(term),
  last: nullable(position),
  versions,
});

export const peerFrame: Arbitrary<PeerFrame> = fc.oneof(
  hello,
  fc.tuple(hello, text(1, 200)).map(([greeting, peer]) => ({ ...greeting, peer })),
  record({
    kind: fc.constant("refused" as const),
    code: fc.constantFrom<PeerRefusalCode>(
      "wrong_cluster",
      "wrong_instance",
      "old_copy",
      "unknown_node",
      "wrong_address",
      "incompatible",
      "unauthorized",
      "wrong_version",
      "removed",
    ),
    problem: info,
  }),
  record({ kind: fc.constant("formed" as const), clusterId: id, firstIndex: count, configuration }),
  record({
    kind: fc.constant("formed" as const),
    clusterId: id,
    firstIndex: count,
    configuration,
    firstConfiguration: configuration,
  }),
  fc.constant({ kind: "goodbye" as const }),
  fc.array(raftMessage, { maxLength: 6 }).map((messages) => ({ kind: "raft" as const, messages })),
);

/** What a snapshot piece may hold, not too deep. */
export const piece: Arbitrary<unknown[]> = fc.letrec<{ value: unknown; list: unknown[] }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", maxDepth: 8 },
    count,
    count.map((value) => (value === 0 ? 0 : -value)),
    info,
    flag,
    fc.constant(null),
    tie("list"),
  ),
  list: fc.array(tie("value"), { maxLength: 6 }),
})).list;
