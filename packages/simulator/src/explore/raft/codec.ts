/** The cluster's constants and a small codec: what is constant in every state, and so no part of any. */
import type { Configuration, EntryCodec, LogBase, Member, NodeId, Position, RaftLimits, Random } from "@holdfast/raft";

const kinds = { noop: 1, command: 2, configuration: 3 } as const;

/** A chain value is the hash over all before it. The logs of the explored scopes are too few for two of them to meet in one value. */
export const codec: EntryCodec = {
  chainFor(previousChain, index, term, kind, payload) {
    let hash = mix(mix(mix(previousChain ^ 0x9e3779b9, index), term), kinds[kind]);
    for (const byte of payload) hash = mix(hash, byte);
    return hash >>> 0;
  },
  encodeConfiguration() {
    throw new Error("the explored scopes change no configuration");
  },
  decodeConfiguration() {
    throw new Error("the explored scopes change no configuration");
  },
};

/** Election timeouts are so much longer than heartbeats that no number of these brings one about: see time in canonical.ts. */
export const electionTimeoutMs: number = 2 ** 24;
export const heartbeatMs = 1;

export const limits: RaftLimits = {
  uncommittedBytesMax: 1_000_000,
  reservedBytesMax: 0,
  appendsInFlightMax: 8,
  appendBytesMax: 1_000_000,
  /** One, so that an entry of an older term may arrive without the new term's first. */
  appendEntriesMax: 1,
  committedBytesPerOutputMax: 1_000_000,
  trailingEntriesMax: 0,
};

/** An election timeout is the longest, so that there is time after the minimum; any other wait is the shortest. */
export const fixedRandom: Random = { integer: (below) => (below === electionTimeoutMs ? below - 1 : 0) };

export function baseFor(ids: readonly NodeId[]): LogBase {
  const configuration: Configuration = { voters: ids.map(memberOf), outgoing: [], learners: [], removed: [] };
  return { position: { term: 0, index: 0 } as Position, chain: 1, configuration };
}

function memberOf(id: NodeId): Member {
  return { id, instance: `${id}-1`, peer: `${id}:1`, client: `${id}:2` };
}

function mix(hash: number, value: number): number {
  const low = Math.imul(hash ^ (value | 0), 0x85ebca6b);
  return Math.imul(low ^ (low >>> 13), 0xc2b2ae35) ^ (low >>> 16);
}
