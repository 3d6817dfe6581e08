/**
 * Messages between consensus cores, inside of peer frames: `[kind, term, field, ...]`. A kind's number never changes.
 */
import type { Entry, LogBase, Message } from "@holdfast/raft";
import { assertNever } from "./assert.js";
import { configurationFields, configurationFrom } from "./configuration-codec.js";
import { entriesFrom, entryFields } from "./entry-codec.js";
import {
  byteString,
  checksum,
  count,
  decodePosition,
  encodePosition,
  fieldsOf,
  flag,
  index,
  listUpTo,
  term,
} from "./fields.js";
import type { Fields } from "./fields.js";
import { limits } from "./limits.js";
import { WireError } from "./wire-error.js";

const kinds = {
  preVote: 1,
  preVoteAnswer: 2,
  vote: 3,
  voteAnswer: 4,
  append: 5,
  appendAccepted: 6,
  appendRejected: 7,
  heartbeat: 8,
  heartbeatAnswer: 9,
  snapshotChunk: 10,
  snapshotAnswer: 11,
  timeoutNow: 12,
} as const satisfies Record<Message["kind"], number>;

/** Fields that stand for an entry in an append. */
const entryFieldCount = 4;

export function raftMessageFields(message: Message): unknown[] {
  switch (message.kind) {
    case "append":
      return [
        kinds.append,
        term(message.term),
        term(message.previous.term),
        index(message.previous.index, "previous"),
        checksum(message.previousChain, "previousChain"),
        index(message.commitIndex, "commitIndex"),
        ...entryFields(
          listUpTo(message.entries, limits.appendEntriesMax, "entries") as readonly Entry[],
          message.previous.index + 1,
        ),
      ];
    case "appendAccepted":
      return [kinds.appendAccepted, term(message.term), index(message.matchIndex, "matchIndex")];
    case "heartbeat":
      return [
        kinds.heartbeat,
        term(message.term),
        index(message.commitIndex, "commitIndex"),
        count(message.round, "round"),
      ];
    case "heartbeatAnswer":
      return [kinds.heartbeatAnswer, term(message.term), count(message.round, "round")];
    case "appendRejected":
      return [
        kinds.appendRejected,
        term(message.term),
        index(message.rejected, "rejected"),
        encodePosition(message.hint, "hint"),
      ];
    case "preVote":
      return [kinds.preVote, term(message.term), encodePosition(message.last, "last")];
    case "preVoteAnswer":
      return [kinds.preVoteAnswer, term(message.term), flag(message.granted, "granted")];
    case "vote":
      return [kinds.vote, term(message.term), encodePosition(message.last, "last"), flag(message.transfer, "transfer")];
    case "voteAnswer":
      return [kinds.voteAnswer, term(message.term), flag(message.granted, "granted")];
    case "snapshotChunk":
      return [
        kinds.snapshotChunk,
        term(message.term),
        baseFields(message.base),
        count(message.chunk, "chunk"),
        byteString(message.bytes, "bytes"),
        flag(message.done, "done"),
      ];
    case "snapshotAnswer":
      return [
        kinds.snapshotAnswer,
        term(message.term),
        index(message.snapshotIndex, "snapshotIndex"),
        count(message.next, "next"),
        flag(message.installed, "installed"),
      ];
    case "timeoutNow":
      return [kinds.timeoutNow, term(message.term)];
    default:
      return assertNever(message, "raft message");
  }
}

export function raftMessageFrom(value: unknown): Message {
  const fields = fieldsOf(value, 1, "message");
  switch (fields[0]) {
    case kinds.append:
      return appendFrom(fields);
    case kinds.appendAccepted:
      return { kind: "appendAccepted", term: term(fields[1]), matchIndex: index(fields[2], "matchIndex") };
    case kinds.heartbeat:
      return {
        kind: "heartbeat",
        term: term(fields[1]),
        commitIndex: index(fields[2], "commitIndex"),
        round: count(fields[3], "round"),
      };
    case kinds.heartbeatAnswer:
      return { kind: "heartbeatAnswer", term: term(fields[1]), round: count(fields[2], "round") };
    case kinds.appendRejected:
      return {
        kind: "appendRejected",
        term: term(fields[1]),
        rejected: index(fields[2], "rejected"),
        hint: decodePosition(fields[3], "hint"),
      };
    case kinds.preVote:
      return { kind: "preVote", term: term(fields[1]), last: decodePosition(fields[2], "last") };
    case kinds.preVoteAnswer:
      return { kind: "preVoteAnswer", term: term(fields[1]), granted: flag(fields[2], "granted") };
    case kinds.vote:
      return {
        kind: "vote",
        term: term(fields[1]),
        last: decodePosition(fields[2], "last"),
        transfer: flag(fields[3], "transfer"),
      };
    case kinds.voteAnswer:
      return { kind: "voteAnswer", term: term(fields[1]), granted: flag(fields[2], "granted") };
    case kinds.timeoutNow:
      return { kind: "timeoutNow", term: term(fields[1]) };
    default:
      return snapshotMessageFrom(fields);
  }
}

function appendFrom(fields: Fields): Message {
  fieldsOf(fields, 8, "append");
  const heads = listUpTo(fields[6], limits.appendEntriesMax * entryFieldCount, "entries");
  const previous = { term: term(fields[2]), index: index(fields[3], "previous") };
  return {
    kind: "append",
    term: term(fields[1]),
    previous,
    previousChain: checksum(fields[4], "previousChain"),
    entries: entriesFrom(heads, byteString(fields[7], "payloads"), previous.index + 1),
    commitIndex: index(fields[5], "commitIndex"),
  };
}

function snapshotMessageFrom(fields: Fields): Message {
  switch (fields[0]) {
    case kinds.snapshotChunk:
      fieldsOf(fields, 6, "snapshotChunk");
      return {
        kind: "snapshotChunk",
        term: term(fields[1]),
        base: baseFrom(fields[2]),
        chunk: count(fields[3], "chunk"),
        bytes: byteString(fields[4], "bytes"),
        done: flag(fields[5], "done"),
      };
    case kinds.snapshotAnswer:
      fieldsOf(fields, 5, "snapshotAnswer");
      return {
        kind: "snapshotAnswer",
        term: term(fields[1]),
        snapshotIndex: index(fields[2], "snapshotIndex"),
        next: count(fields[3], "next"),
        installed: flag(fields[4], "installed"),
      };
    default:
      throw new WireError("unknown_message", null, "has a message of a kind that this release doesn't know");
  }
}

export function baseFields(base: LogBase): unknown[] {
  return [
    encodePosition(base.position, "position"),
    checksum(base.chain, "chain"),
    configurationFields(base.configuration),
  ];
}

export function baseFrom(value: unknown): LogBase {
  const fields = fieldsOf(value, 3, "base");
  return {
    position: decodePosition(fields[0], "position"),
    chain: checksum(fields[1], "chain"),
    configuration: configurationFrom(fields[2]),
  };
}
