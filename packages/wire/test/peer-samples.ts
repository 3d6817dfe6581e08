/** One value of every kind that nodes say to one another or store, for golden bytes and as seeds of mutations: see samples.ts. */
import type { Configuration, Entry, Index, LogBase, Message, Position, Term } from "@holdfast/raft";
import type { PeerFrame } from "../src/index.js";
import { large, n1, n2, n3 } from "./samples.js";

export function termOf(value: number): Term {
  return value as Term;
}

export function indexOf(value: number): Index {
  return value as Index;
}

export function positionOf(term: number, index: number): Position {
  return { term: termOf(term), index: indexOf(index) };
}

export const configuration: Configuration = { voters: [n1, n2], outgoing: [n1], learners: [n3], removed: ["n0"] };
export const base: LogBase = { position: positionOf(2, large), chain: 0xfedcba98, configuration };

export const entries: readonly Entry[] = [
  { index: indexOf(8), term: termOf(3), kind: "noop", payload: new Uint8Array(), chain: 0 },
  { index: indexOf(9), term: termOf(3), kind: "command", payload: new Uint8Array([1, 2, 3]), chain: 0xffffffff },
  { index: indexOf(10), term: termOf(4), kind: "configuration", payload: new Uint8Array([0x90]), chain: 1 },
];

export const raftMessages: Record<Message["kind"], Message> = {
  preVote: { kind: "preVote", term: termOf(4), last: positionOf(3, 10) },
  preVoteAnswer: { kind: "preVoteAnswer", term: termOf(4), granted: true },
  vote: { kind: "vote", term: termOf(4), last: positionOf(3, 10), transfer: true },
  voteAnswer: { kind: "voteAnswer", term: termOf(4), granted: false },
  append: {
    kind: "append",
    term: termOf(4),
    previous: positionOf(3, 7),
    previousChain: 0x89abcdef,
    entries,
    commitIndex: indexOf(6),
  },
  appendAccepted: { kind: "appendAccepted", term: termOf(4), matchIndex: indexOf(10) },
  appendRejected: { kind: "appendRejected", term: termOf(4), rejected: indexOf(7), hint: positionOf(2, 5) },
  heartbeat: { kind: "heartbeat", term: termOf(4), commitIndex: indexOf(10), round: 77 },
  heartbeatAnswer: { kind: "heartbeatAnswer", term: termOf(4), round: 77 },
  snapshotChunk: {
    kind: "snapshotChunk",
    term: termOf(4),
    base,
    chunk: 2,
    bytes: new Uint8Array([9, 8, 7]),
    done: true,
  },
  snapshotAnswer: { kind: "snapshotAnswer", term: termOf(4), snapshotIndex: indexOf(large), next: 3, installed: false },
  timeoutNow: { kind: "timeoutNow", term: termOf(4) },
};

export const peerFrames: Record<PeerFrame["kind"], readonly PeerFrame[]> = {
  hello: [
    {
      kind: "hello",
      protocol: 1,
      cluster: "local-three",
      from: "n1",
      to: "n2",
      instance: "i-aa",
      clusterId: "c-1",
      boot: 5,
      term: termOf(4),
      last: positionOf(3, large),
      versions: { min: 1, max: 2 },
    },
    {
      kind: "hello",
      protocol: 1,
      cluster: "local-three",
      from: "n1",
      to: "n2",
      instance: "i-aa",
      clusterId: null,
      boot: 1,
      term: null,
      last: null,
      versions: { min: 1, max: 1 },
    },
    {
      kind: "hello",
      protocol: 1,
      cluster: "local-three",
      from: "n4",
      to: "n2",
      instance: "i-dd",
      clusterId: "c-1",
      boot: 1,
      term: termOf(0),
      last: positionOf(0, 0),
      versions: { min: 1, max: 2 },
      peer: "10.0.0.4:7201",
    },
  ],
  refused: [
    { kind: "refused", code: "wrong_cluster", problem: "a" },
    { kind: "refused", code: "wrong_instance", problem: "b" },
    { kind: "refused", code: "old_copy", problem: "c" },
    { kind: "refused", code: "unknown_node", problem: "d" },
    { kind: "refused", code: "wrong_address", problem: "e" },
    { kind: "refused", code: "incompatible", problem: "f" },
    { kind: "refused", code: "unauthorized", problem: "" },
    { kind: "refused", code: "wrong_version", problem: "g" },
    { kind: "refused", code: "removed", problem: "h" },
  ],
  formed: [
    { kind: "formed", clusterId: "c-1", firstIndex: 1, configuration },
    {
      kind: "formed",
      clusterId: "c-1",
      firstIndex: 9,
      configuration,
      firstConfiguration: { voters: [n1], outgoing: [], learners: [], removed: [] },
    },
  ],
  goodbye: [{ kind: "goodbye" }],
  raft: Object.values(raftMessages).map((message) => ({ kind: "raft", messages: [message] })),
};

export const snapshotPiece: unknown[] = [1, -2, large, "name", true, false, null, [[["deep"], 0], []]];
