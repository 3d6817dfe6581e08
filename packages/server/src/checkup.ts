/** What a node tells `holdfast doctor` beyond its status. Reads only; what is wrong with it is judged there. */
import { statfs } from "node:fs/promises";
import { versionRange } from "@holdfast/lock";
import type { VersionRange } from "@holdfast/lock";
import type { Configuration, NodeId } from "@holdfast/raft";
import { limits } from "@holdfast/wire";
import type { NodeStatus } from "@holdfast/wire";
import type { Config } from "./config.js";
import type { RefusedBeginning } from "./formation.js";
import type { Health } from "./node-routes.js";
import type { TimesSummary } from "./recent-times.js";

/** Of the node host; there is none before the cluster is formed. */
export interface HostCheckup {
  /** In force at this node, and the index of the entry or base that it comes from. */
  readonly configuration: Pick<Configuration, "voters" | "outgoing" | "learners">;
  readonly configurationIndex: number;
  /** Ids that were removed from the cluster, by that configuration. */
  readonly removed: readonly NodeId[];
  /** Synced batches, the last thousand at most; null before the first. */
  readonly syncs: TimesSummary | null;
  /** A write has been under way for longer than the configuration's diskStallMs. */
  readonly isDiskOverdue: boolean;
  readonly stalls: StallsCheckup;
  /** The others, as the leader sees them; empty at all other nodes. */
  readonly followers: readonly FollowerCheckup[];
}

/** Times at which the loop stood still for longer than half an election timeout, since the start. */
export interface StallsCheckup {
  readonly count: number;
  readonly longestMs: number;
  readonly lastMsAgo: number | null;
}

export interface FollowerCheckup {
  readonly id: NodeId;
  readonly behindEntries: number;
  readonly heardMsAgo: number;
}

export interface DiskSpace {
  /** For processes without privileges. */
  readonly freeBytes: number;
  readonly totalBytes: number;
}

export interface Checkup {
  readonly id: NodeId;
  /** Of this data directory; null while it is being opened. */
  readonly instance: string | null;
  readonly boot: number | null;
  readonly release: string;
  /** Of Node. */
  readonly runtime: string;
  readonly protocol: number;
  readonly versions: VersionRange;
  readonly uptimeMs: number;
  readonly health: Health;
  /** What the configuration file says. */
  readonly file: Pick<Config, "cluster" | "timing" | "limits"> & {
    readonly nodes: readonly { readonly id: NodeId; readonly peer: string; readonly client: string }[];
  };
  readonly status: NodeStatus | null;
  readonly host: HostCheckup | null;
  /** It isn't formed, and the log of a peer that is begins below its --first-index. */
  readonly refusedBeginning: RefusedBeginning | null;
  /** The other nodes of the file and of the configuration, and whether links stand in both directions. */
  readonly links: readonly { readonly id: NodeId; readonly isLinked: boolean }[];
  readonly connections: number;
  readonly dataDirectory: string;
}

/** As it is sent. */
export interface CheckupAnswer extends Checkup {
  /** Of the file system with the data directory; null when the operating system doesn't say. */
  readonly disk: DiskSpace | null;
}

/** For measuring how fast a node's clock runs: what it shows now, and in which life of the node. */
export interface ClockReading {
  readonly boot: number | null;
  readonly monotonicMs: number;
}

export interface CheckupSource {
  readonly config: Config;
  readonly nodeId: NodeId;
  readonly release: string;
  readonly dataDirectory: string;
  readonly instance: string | null;
  readonly boot: number | null;
  readonly uptimeMs: number;
  readonly health: Health;
  readonly status: NodeStatus | null;
  readonly host: HostCheckup | null;
  readonly refusedBeginning: RefusedBeginning | null;
  readonly linked: ReadonlySet<NodeId>;
  readonly connections: number;
}

export function checkupFrom(source: CheckupSource): Checkup {
  const { config, nodeId: id, linked, uptimeMs, ...told } = source;
  const { cluster, timing, limits: configured } = config;
  const nodes = config.nodes.map(({ id: each, peer, client }) => ({ id: each, peer, client }));
  return {
    id,
    instance: told.instance,
    boot: told.boot,
    release: told.release,
    runtime: process.version,
    protocol: limits.protocolVersion,
    versions: versionRange,
    uptimeMs: Math.round(uptimeMs),
    health: told.health,
    file: { cluster, nodes, timing, limits: configured },
    status: told.status,
    host: told.host,
    refusedBeginning: told.refusedBeginning,
    links: othersOf(source).map((each) => ({ id: each, isLinked: linked.has(each) })),
    connections: told.connections,
    dataDirectory: told.dataDirectory,
  };
}

function othersOf({ config, nodeId, host }: CheckupSource): NodeId[] {
  const { voters = [], outgoing = [], learners = [] } = host?.configuration ?? {};
  const all = [...config.nodes, ...voters, ...outgoing, ...learners].map(({ id }) => id);
  return [...new Set(all)].filter((id) => id !== nodeId);
}

/** Null when the operating system doesn't say. */
export async function diskSpaceOf(directory: string): Promise<DiskSpace | null> {
  try {
    const { bavail, blocks, bsize } = await statfs(directory);
    return { freeBytes: bavail * bsize, totalBytes: blocks * bsize };
  } catch {
    return null;
  }
}
