/**
 * Frames between nodes: a crc32c of 4 bytes, big-endian, and behind it one msgpack array `[kind, field, ...]`. Fields
 * that a later release adds at the end are ignored. Behind an optional field that isn't given they need a null in its
 * place.
 */
import type { Message, Position } from "@holdfast/raft";
import type { PeerFrame, PeerHello, PeerRefusalCode } from "./peer-messages.js";
import { assertNever } from "./assert.js";
import { configurationFields, configurationFrom } from "./configuration-codec.js";
import { crc32c } from "./crc32c.js";
import {
  anyText,
  count,
  decodePosition,
  encodePosition,
  fieldsOf,
  id,
  index,
  isGiven,
  listUpTo,
  mapList,
  nullable,
  term,
  text,
  wordsOf,
} from "./fields.js";
import type { Fields } from "./fields.js";
import { limits } from "./limits.js";
import { packBehind, unpack } from "./msgpack.js";
import { raftMessageFields, raftMessageFrom } from "./raft-codec.js";
import { readChecksum, writeChecksum } from "./checksum.js";
import { firstVersions, versionFields, versionsFrom } from "./versions-codec.js";
import { WireError } from "./wire-error.js";

const kinds = { hello: 1, refused: 2, formed: 3, goodbye: 4, raft: 5 } as const satisfies Record<
  PeerFrame["kind"],
  number
>;

const refusalCodes = wordsOf<PeerRefusalCode>({
  wrong_cluster: 1,
  wrong_instance: 2,
  old_copy: 3,
  unknown_node: 4,
  wrong_address: 5,
  incompatible: 6,
  unauthorized: 7,
  wrong_version: 8,
  removed: 9,
});

const checksumBytes = 4;

/**
 * Throws a WireError "too_large" when the frame is longer than a peer takes; encodeRaftFrames never makes such ones.
 */
export function encodePeerFrame(frame: PeerFrame): Uint8Array {
  const bytes = packBehind(checksumBytes, frameFields(frame));
  if (bytes.length > limits.peerFrameBytesMax) throw tooLarge();
  writeChecksum(bytes, 0, crc32c(bytes, 0, checksumBytes));
  return bytes;
}

/**
 * Throws a WireError: "bad_checksum" before anything else is looked at. What is returned shares no memory with `bytes`.
 */
export function decodePeerFrame(bytes: Uint8Array): PeerFrame {
  if (bytes.length > limits.peerFrameBytesMax) throw tooLarge();
  if (bytes.length <= checksumBytes) throw new WireError("truncated", null, "is shorter than a frame's header");
  if (readChecksum(bytes, 0) !== crc32c(bytes, 0, checksumBytes))
    throw new WireError("bad_checksum", null, "has a wrong checksum");
  return frameFrom(unpack(bytes, checksumBytes, limits.frameItemsMax));
}

/** The messages in their order, in as few frames as the limits allow: a whole window of appends doesn't fit in one. */
export function encodeRaftFrames(messages: readonly Message[]): Uint8Array[] {
  const frames: Uint8Array[] = [];
  let begin = 0;
  let bytes = 0;
  let items = 0;
  for (let at = 0; at < messages.length; at++) {
    const size = sizeBoundFor(messages[at] as Message);
    const isFull =
      bytes + size.bytes > limits.peerFrameBytesMax ||
      items + size.items > limits.frameItemsMax ||
      at - begin === limits.messagesPerFrameMax;
    if (isFull && at > begin) {
      frames.push(encodePeerFrame({ kind: "raft", messages: messages.slice(begin, at) }));
      begin = at;
      bytes = 0;
      items = 0;
    }
    bytes += size.bytes;
    items += size.items;
  }
  if (begin < messages.length) {
    const rest = begin === 0 ? messages : messages.slice(begin);
    frames.push(encodePeerFrame({ kind: "raft", messages: rest }));
  }
  return frames;
}

/** Bytes and items that a message takes at most, with its share of the frame. */
function sizeBoundFor(message: Message): { bytes: number; items: number } {
  const size = { bytes: 128, items: 16 };
  if (message.kind === "append") {
    for (const entry of message.entries) size.bytes += entry.payload.length + 32;
    size.items += message.entries.length * 4;
  } else if (message.kind === "snapshotChunk") {
    const { voters, outgoing, learners, removed } = message.base.configuration;
    const members = voters.length + outgoing.length + learners.length;
    size.bytes += message.bytes.length + members * (2 * limits.idBytesMax + 2 * limits.addressBytesMax + 32);
    size.bytes += removed.length * (limits.idBytesMax + 8);
    size.items += members * 5 + removed.length;
  }
  return size;
}

function frameFields(frame: PeerFrame): unknown[] {
  switch (frame.kind) {
    case "raft":
      return [
        kinds.raft,
        listUpTo(frame.messages, limits.messagesPerFrameMax, "messages").map((message) =>
          raftMessageFields(message as Message),
        ),
      ];
    case "hello":
      return [
        kinds.hello,
        count(frame.protocol, "protocol"),
        id(frame.cluster, "cluster"),
        id(frame.from, "from"),
        id(frame.to, "to"),
        id(frame.instance, "instance"),
        nullable(frame.clusterId, "clusterId", id),
        count(frame.boot, "boot"),
        nullable(frame.term, "term", term),
        frame.last === null ? null : encodePosition(frame.last, "last"),
        versionFields(frame.versions),
        ...(frame.peer === undefined ? [] : [text(frame.peer, 1, limits.addressBytesMax, "peer")]),
      ];
    case "refused":
      return [kinds.refused, refusalCodes.numberFor(frame.code, "code"), anyText(frame.problem, "problem")];
    case "formed":
      return [
        kinds.formed,
        id(frame.clusterId, "clusterId"),
        index(frame.firstIndex, "firstIndex"),
        configurationFields(frame.configuration),
        ...(frame.firstConfiguration === undefined ? [] : [configurationFields(frame.firstConfiguration)]),
      ];
    case "goodbye":
      return [kinds.goodbye];
    default:
      return assertNever(frame, "peer frame");
  }
}

function frameFrom(value: unknown): PeerFrame {
  const fields = fieldsOf(value, 1, "frame");
  switch (fields[0]) {
    case kinds.raft:
      return {
        kind: "raft",
        messages: mapList(listUpTo(fields[1], limits.messagesPerFrameMax, "messages"), "messages", raftMessageFrom),
      };
    case kinds.hello:
      return helloFrom(fields);
    case kinds.refused:
      fieldsOf(fields, 3, "refused");
      return { kind: "refused", code: refusalCodes.wordFor(fields[1], "code"), problem: anyText(fields[2], "problem") };
    case kinds.formed:
      fieldsOf(fields, 4, "formed");
      return {
        kind: "formed",
        clusterId: id(fields[1], "clusterId"),
        firstIndex: index(fields[2], "firstIndex"),
        configuration: configurationFrom(fields[3]),
        ...(isGiven(fields, 4) ? { firstConfiguration: configurationFrom(fields[4]) } : {}),
      };
    case kinds.goodbye:
      return { kind: "goodbye" };
    default:
      throw new WireError("unknown_message", null, "is a frame of a kind that this release doesn't know");
  }
}

function helloFrom(fields: Fields): PeerHello {
  fieldsOf(fields, 10, "hello");
  return {
    kind: "hello",
    protocol: count(fields[1], "protocol"),
    cluster: id(fields[2], "cluster"),
    from: id(fields[3], "from"),
    to: id(fields[4], "to"),
    instance: id(fields[5], "instance"),
    clusterId: nullable(fields[6], "clusterId", id),
    boot: count(fields[7], "boot"),
    term: nullable(fields[8], "term", term),
    last: nullable<Position>(fields[9], "last", decodePosition),
    versions: fields.length > 10 ? versionsFrom(fields[10]) : firstVersions,
    ...(isGiven(fields, 11) ? { peer: text(fields[11], 1, limits.addressBytesMax, "peer") } : {}),
  };
}

function tooLarge(): WireError {
  return new WireError("too_large", null, `is longer than ${limits.peerFrameBytesMax} bytes`);
}
