/**
 * Every limit, each with its reason, and the sums that tie them together: those are checked when this module loads.
 * Bytes are bytes of UTF-8 or of a frame; durations are milliseconds. An upper bound that entries of the log were
 * checked against may be raised in a later release, and never lowered.
 */
import { assert } from "./assert.js";

/** Bytes of a msgpack number, list header or text header at most. */
const numberBytesMax = 9;
const headerBytesMax = 5;

export const limits = {
  /** Rises when an older node or client could misread a frame. */
  protocolVersion: 1,
  /** First byte of everything stored: entries, snapshot pieces, hard state, base. */
  formatVersion: 1,

  // What a client may ask for.

  /** Long enough for a path or URL, short enough that 64 of them make a small entry. At least one byte. */
  nameBytesMax: 512,
  /** Names of one acquire: each is examined at every grant, and all stand in each waiter's view. */
  namesMax: 64,
  /** For people to read: host, process, purpose. May be empty. */
  infoBytesMax: 1_024,
  /** Who forced a release, for the log. */
  principalBytesMax: 256,
  /** Ids of nodes and clusters, instances, features. */
  idBytesMax: 128,
  /** "host:port": a DNS name has at most 253 bytes. */
  addressBytesMax: 263,
  /** A session's key: 16 random bytes as lower-case hex digits. */
  keyDigits: 32,
  /** The id of a key that signs sequencers: the first 8 bytes of its public key's SHA-256, as lower-case hex digits. It tells keys apart, no more. */
  signingKeyIdDigits: 16,
  /** A sequencer of the longest name (683 letters in base64url) with all the rest at its longest (about 170), and some room. It is ASCII. */
  sequencerBytesMax: 1_024,
  /** An Ed25519 public key, and the seed of one. */
  signingKeyBytes: 32,
  /** The current key and the former ones that the lock machine keeps. */
  signingKeysMax: 8,
  /**
   * 3 election timeouts + 500 ms is what a node demands, so no configuration can allow less. The node checks its own
   * minimum.
   */
  ttlMsMin: 500,
  /** A dead holder keeps its locks for up to twice this. */
  ttlMsMax: 3_600_000,
  /**
   * A lock-delay waits for the late writes of a holder that is gone: a minute is beyond any socket's or disk's
   * patience.
   */
  lockDelayMsMax: 60_000,
  /**
   * The same as the lock-delay, and no more: nothing ends such a pause early, a wrong value must not close a name for
   * hours.
   */
  afterMsMax: 60_000,
  /** A week. It must fit in one timer (2^31-1 ms) with room to spare; a hold without a limit is 0. */
  maxHoldMsMax: 604_800_000,
  /** Places of a semaphore: granting walks them. */
  slotsMax: 1_024,
  /** Requests above `settled` that one command calls seen (docs/decisions/001-seen-requests.md). */
  seenMax: 64,
  /** Unseen outcomes that the lock machine keeps for a session; the client stops sending before that. */
  outcomesPerSessionMax: 1_024,
  /** Locks or sessions in one answer. */
  queryLimitMax: 1_000,
  /** Waiters that a view of one lock shows: a queue of thousands doesn't fit in an answer, and nobody reads it. */
  waitersShownMax: 16,

  // Commands.

  /** A silence count goes from 0 to 8 eighths of the TTL. */
  eighthsMax: 8,
  /** Sessions named by one expireSessions, suspectSessions or renewSuspects. The leader names fewer that hold much. */
  idsPerCommandMax: 1_000,
  /** An encoded command. The longest acquire and the longest expireSessions fit. */
  commandBytesMax: 65_536,

  // Frames.

  /** msgpack arrays inside arrays. The deepest message of ours has 8. */
  frameDepthMax: 16,
  /** msgpack values in a frame from a client or peer: bounds what decoding allocates. */
  frameItemsMax: 65_536,
  /** Messages in one frame: a turn's worth, not more. */
  messagesPerFrameMax: 4_096,
  /** `hello` lists them; nobody has that many. */
  featuresMax: 64,
  clientFrameBytesMax: 1_048_576,
  /** To clients: larger, since what a session holds is told in one message when it is resumed. */
  serverFrameBytesMax: 4_194_304,
  serverFrameItemsMax: 1_048_576,
  /** Larger than an append with its overhead, so that several share a frame. */
  peerFrameBytesMax: 8_388_608,
  /** Small enough that a heartbeat behind it is not late on a slow network: 20 ms at 100 Mbit/s. */
  snapshotChunkBytes: 262_144,
  /** ws: pieces and fragments of one incoming message; a small-fragment flood is cut off there. */
  frameFragmentsMax: 64,
  clientFrameChunksMax: 8_192,
  peerFrameChunksMax: 65_536,

  // Members of a cluster.

  /** In each of voters, outgoing and learners. Consensus over more is slow, and nobody runs it. */
  membersMax: 32,
  /** Ids of removed members, kept for ever. */
  removedMax: 4_096,

  // The log (RaftLimits).

  /** Payload bytes of one append: about 10 ms on a 1 Gbit/s link. */
  appendBytesMax: 1_048_576,
  /** Entries of one append: their fields count as items of a frame. */
  appendEntriesMax: 4_096,
  /** Appends under way to one peer: hides 15 round trips behind one. */
  appendsInFlightMax: 16,
  /** Some seconds of full load. */
  uncommittedBytesMax: 8_388_608,
  /**
   * Entries in the leader's log that it has not applied yet: some 200 ms of full load, and more than 2,048 clients that each wait for an answer
   * have there. More would only be latency, for keepalives too: a client is better told `overloaded`.
   */
  unappliedEntriesMax: 8_192,
  /** On top, for what frees locks: releases and expiries pass when acquires are refused. */
  reservedBytesMax: 8_388_608,
  /** Handed over at once, to be applied: about 4,000 small commands. */
  committedBytesPerOutputMax: 262_144,
  /** Kept behind a snapshot, so that a follower back from a restart needs no snapshot: about 3 s of full load. */
  trailingEntriesMax: 65_536,

  // Connections of a node.

  /** One socket costs about 20 KiB; the process's file limit has to allow them. */
  clientConnectionsMax: 10_000,
  /** One session per TTL in use is the rule; manual locks have one each. */
  sessionsPerConnectionMax: 1_024,
  /** Sessions of a cluster: each has its timers at the leader. */
  sessionsMax: 100_000,
  /** Sockets between TCP connect and the end of the websocket handshake. */
  pendingUpgradesMax: 256,
  /** A client that reads slower than we write is marked at the first, and cut off at the second. */
  clientBufferedBytesSlow: 1_048_576,
  clientBufferedBytesMax: 8_388_608,
  /** A peer's socket may hold the whole window of appends, and not much more. */
  peerBufferedBytesMax: 33_554_432,
  /** Queries, forced releases and transfers of one connection that wait for their quorum round. */
  queriesPerConnectionMax: 1_024,

  // Watches.

  /** A program watches some prefixes, or the locks that it has to do with. */
  watchesPerConnectionMax: 1_024,
  /** Of a node: each is held against every change, some 20 ns. Watches of single names cost nothing until theirs changes. */
  prefixWatchesMax: 1_024,
  /** Of one entry that a watch is told; what changes more (many sessions that expire at once) is told as a gap. */
  changesPerEntryMax: 1_024,
  /** Changes that a node remembers, for watches that come back after a change of leader: some seconds of full load, 2 MB. */
  changesKeptMax: 16_384,
} as const;

/** Bytes of a text with its header. */
function textBytes(bytes: number): number {
  return bytes + headerBytesMax;
}

function listBytes(count: number, itemBytes: number): number {
  return headerBytesMax + count * itemBytes;
}

const sessionRequestBytesMax = 4 * numberBytesMax + listBytes(limits.seenMax, numberBytesMax);
const acquireBytesMax =
  headerBytesMax +
  sessionRequestBytesMax +
  listBytes(limits.namesMax, textBytes(limits.nameBytesMax)) +
  5 * numberBytesMax +
  textBytes(limits.infoBytesMax);
const memberBytesMax = headerBytesMax + 2 * textBytes(limits.idBytesMax) + 2 * textBytes(limits.addressBytesMax);
const configurationBytesMax =
  listBytes(3 * limits.membersMax, memberBytesMax) + listBytes(limits.removedMax, textBytes(limits.idBytesMax)) + 64;

/** Fields of an entry in an append. */
const entryItems = 4;
const entryOverheadBytes = 3 * numberBytesMax + headerBytesMax;

assert(acquireBytesMax <= limits.commandBytesMax, "the longest acquire fits in a command");
assert(
  listBytes(limits.idsPerCommandMax, numberBytesMax) + 64 <= limits.commandBytesMax,
  "a full expiry fits in a command",
);
assert(limits.commandBytesMax * 8 <= limits.clientFrameBytesMax, "several commands fit in a client's frame");
assert(limits.commandBytesMax <= limits.appendBytesMax, "every command fits in an append");
assert(configurationBytesMax <= limits.appendBytesMax, "every configuration fits in an append");
assert(limits.commandBytesMax <= limits.committedBytesPerOutputMax, "every command fits in an output");
assert(
  limits.appendBytesMax + limits.appendEntriesMax * entryOverheadBytes + 64 <= limits.peerFrameBytesMax / 2,
  "a full append fits in a peer's frame, and another beside it",
);
assert(limits.appendEntriesMax * entryItems + 64 <= limits.frameItemsMax / 2, "a full append has few enough items");
assert(
  limits.snapshotChunkBytes + configurationBytesMax + 64 <= limits.peerFrameBytesMax,
  "a snapshot chunk with its base fits in a peer's frame",
);
assert(
  limits.removedMax + 3 * limits.membersMax * 5 + 64 <= limits.frameItemsMax,
  "a configuration has few enough items",
);
assert(
  limits.messagesPerFrameMax * 8 + limits.featuresMax <= limits.frameItemsMax,
  "a full frame of queries has few enough items",
);
assert(
  2 * limits.outcomesPerSessionMax * (limits.namesMax * 4 + 4) <= limits.serverFrameItemsMax,
  "all holds of a session, and as many outcomes, have few enough items for one frame",
);
assert(
  limits.serverFrameBytesMax * 2 <= limits.clientBufferedBytesMax,
  "the largest frame doesn't cut its own reader off",
);
assert(limits.clientBufferedBytesSlow < limits.clientBufferedBytesMax, "slow comes before too slow");
assert(
  limits.appendsInFlightMax * limits.appendBytesMax + limits.peerFrameBytesMax <= limits.peerBufferedBytesMax,
  "a window of appends fits in a peer's socket",
);
assert(limits.commandBytesMax < limits.reservedBytesMax, "the reserve holds more than one command");
assert(
  limits.committedBytesPerOutputMax < limits.uncommittedBytesMax,
  "an output is a part of what may be uncommitted",
);
assert(limits.ttlMsMin < limits.ttlMsMax && limits.maxHoldMsMax < 2 ** 31, "every duration fits in a timer");
assert(
  limits.frameFragmentsMax < limits.clientFrameChunksMax && limits.clientFrameChunksMax < limits.peerFrameChunksMax,
  "chunks",
);
