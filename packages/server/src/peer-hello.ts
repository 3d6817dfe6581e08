/** Who may be on the other end of a peer link. Pure: the links ask, and carry out the answer. */
import type { Configuration, NodeId } from "@holdfast/raft";
import { limits } from "@holdfast/wire";
import type { PeerHello, PeerRefusalCode } from "@holdfast/wire";
import type { PeerMemory } from "./peer-memory.js";

/** The cluster as a formed node knows it; what it hands on to an unformed one. */
export interface FormedFacts {
  readonly clusterId: string;
  /** Index of the log's first entry, for a node that begins with nothing. */
  readonly firstIndex: number;
  /** In force: the newest in the log. */
  readonly configuration: Configuration;
  /** The one before the first entry, while this node still has its log from there. */
  readonly firstConfiguration?: Configuration;
}

export interface HelloJudge {
  readonly self: NodeId;
  /** The name in the configuration file. */
  readonly cluster: string;
  /** Ids in the configuration file. */
  readonly fileIds: ReadonlySet<NodeId>;
  readonly formed: FormedFacts | null;
  /** The newest configuration that is known to be committed; null before formation. */
  readonly committed: Configuration | null;
  /** The cluster that this node waits to be added to; null for any other node. */
  readonly joins: string | null;
  readonly memory: PeerMemory;
  /** As far as this node has applied the log. */
  readonly clusterVersion: number;
}

export interface HelloRefusal {
  readonly code: PeerRefusalCode;
  /** A sentence for the refused side's log. */
  readonly problem: string;
}

/** `expected`: whom this node dialled; null for a caller. `process`: the other process's random name. */
export function judgeHello(
  judge: HelloJudge,
  hello: PeerHello,
  process: string,
  expected: NodeId | null,
): HelloRefusal | null {
  const { self, formed } = judge;
  if (hello.protocol !== limits.protocolVersion) {
    return {
      code: "incompatible",
      problem: `${self} speaks peer protocol ${limits.protocolVersion}, not ${hello.protocol}`,
    };
  }
  if (hello.cluster !== judge.cluster) {
    return { code: "wrong_cluster", problem: `${self} belongs to cluster "${judge.cluster}", not "${hello.cluster}"` };
  }
  if (hello.to !== self) return { code: "wrong_address", problem: `this is ${self}, not ${hello.to}` };
  if (expected !== null && hello.from !== expected) {
    return { code: "wrong_address", problem: `${self} has called ${expected}, and ${hello.from} has answered` };
  }
  if (formed === null) {
    // A formed caller judges this node by its configuration; here only the file can speak, or the cluster that is to be joined.
    if (judge.joins !== null) return joinRefusal(judge.joins, self, hello) ?? memoryRefusal(judge, hello, process);
    if (judge.fileIds.has(hello.from)) return memoryRefusal(judge, hello, process);
    return { code: "unknown_node", problem: `${self}'s configuration file has no node ${hello.from}` };
  }
  if (hello.clusterId !== null && hello.clusterId !== formed.clusterId) {
    return {
      code: "wrong_cluster",
      problem: `${self} belongs to cluster id ${formed.clusterId}, not ${hello.clusterId}`,
    };
  }
  return memberRefusal(judge, formed, hello) ?? memoryRefusal(judge, hello, process) ?? versionRefusal(judge, hello);
}

function joinRefusal(joins: string, self: NodeId, hello: PeerHello): HelloRefusal | null {
  if (hello.clusterId === joins) return null;
  return { code: "wrong_cluster", problem: `${self} waits to join cluster id ${joins}, not ${hello.clusterId}` };
}

/**
 * What is final rests on committed configurations alone: an entry that is not committed may be cut off again. And this node may be behind:
 * whoever has the cluster's id got it from a member, and may have become one in entries that this node has not seen.
 */
function memberRefusal(judge: HelloJudge, formed: FormedFacts, hello: PeerHello): HelloRefusal | null {
  const committed = judge.committed ?? formed.configuration;
  if (committed.removed.includes(hello.from)) {
    return { code: "removed", problem: `${hello.from} was removed from this cluster, and an id never comes back` };
  }
  const settled = instancesOf(committed, hello.from);
  const inForce = instancesOf(formed.configuration, hello.from);
  if (settled.includes(hello.instance) || inForce.includes(hello.instance)) return null;
  if (settled.length > 0) {
    return {
      code: "wrong_instance",
      problem: `the cluster knows ${hello.from} with another data directory (instance ${settled[0]}, not ${hello.instance}), says ${judge.self}`,
    };
  }
  if (hello.clusterId !== null && inForce.length === 0) return null;
  return { code: "unknown_node", problem: `the cluster has no node ${hello.from}` };
}

/** Under this id; more than one only while one takes the other's place. */
export function instancesOf({ voters, outgoing, learners }: Configuration, id: NodeId): string[] {
  return [...voters, ...outgoing, ...learners].filter((member) => member.id === id).map((member) => member.instance);
}

function memoryRefusal(judge: HelloJudge, hello: PeerHello, process: string): HelloRefusal | null {
  const problem = judge.memory.problemWith(hello, process);
  return problem === null
    ? null
    : { code: "old_copy", problem: `${hello.from}'s data directory is an old copy: ${problem}` };
}

/** Only one that is too old: a newer release that has skipped some knows by itself, from its own log, that it can't go on. */
function versionRefusal({ clusterVersion }: HelloJudge, { from, versions }: PeerHello): HelloRefusal | null {
  if (versions.max >= clusterVersion) return null;
  return {
    code: "wrong_version",
    problem: `the cluster is at version ${clusterVersion}, and ${from} runs version ${versions.max} at most: start the newer release again, the upgrade to it was finalized`,
  };
}
