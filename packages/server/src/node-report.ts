/** What a node says of itself: status, health, figures. Reads only. */
import type { Mode, VersionRange } from "@holdfast/lock";
import type { Raft } from "@holdfast/raft";
import type { NodeAddress, NodeStatus } from "@holdfast/wire";
import type { Applier } from "./applier.js";
import type { HostCheckup } from "./checkup.js";
import type { HostFigures } from "./metrics.js";
import type { Membership } from "./membership.js";
import { RecentTimes } from "./recent-times.js";

/** More committed entries than this left to apply: the node isn't ready for clients. */
const backlogMax = 10_000;
/** Synced batches whose times are known. */
const syncsMax = 1_000;

export interface NodeFacts {
  readonly clusterId: string;
  readonly version: string;
  /** The cluster versions that this node can run. */
  readonly versions: VersionRange;
}

export class NodeReport {
  private readonly facts: NodeFacts;
  private readonly raft: Raft;
  private readonly applier: Applier;
  private readonly membership: Pick<Membership, "nodes" | "addressOf">;
  private readonly syncs: RecentTimes = new RecentTimes(syncsMax);
  private readonly stalls = { count: 0, longestMs: 0, lastAtMs: 0 };

  constructor(facts: NodeFacts, raft: Raft, applier: Applier, membership: Pick<Membership, "nodes" | "addressOf">) {
    this.facts = facts;
    this.raft = raft;
    this.applier = applier;
    this.membership = membership;
  }

  /** All members, where clients find them. */
  nodes(): NodeAddress[] {
    return this.membership.nodes();
  }

  leader(): NodeAddress | null {
    return this.membership.addressOf(this.raft.leader);
  }

  status(uptimeMs: number): NodeStatus {
    const { raft, applier, facts } = this;
    const { machine } = applier;
    return {
      id: raft.id,
      role: raft.role,
      term: raft.term,
      leader: raft.leader,
      commitIndex: raft.commitIndex,
      lastApplied: applier.lastApplied,
      lastIndex: raft.lastIndex,
      snapshotIndex: raft.snapshotIndex,
      sessions: machine.sessionCount,
      locks: machine.lockCount,
      clusterId: facts.clusterId,
      version: facts.version,
      uptimeMs: Math.round(uptimeMs),
      nodes: this.nodes(),
      clusterVersion: machine.clusterVersion,
      versions: facts.versions,
    };
  }

  /** Why it isn't ready for clients; null when it is. */
  problem(): string | null {
    const { raft, applier } = this;
    if (raft.leader === null) return "no leader is known";
    const behind = raft.commitIndex - applier.lastApplied;
    return behind > backlogMax ? `${behind} committed entries are not applied yet` : null;
  }

  figures(): HostFigures {
    const { raft, applier } = this;
    const { machine } = applier;
    return {
      term: raft.term,
      commitIndex: raft.commitIndex,
      lastApplied: applier.lastApplied,
      isLeader: raft.role === "leader",
      sessions: machine.sessionCount,
      locks: machine.lockCount,
      waiters: machine.waiterCount,
    };
  }

  noteSync(ms: number): void {
    this.syncs.add(ms);
  }

  noteStall(durationMs: number, nowMs: number): void {
    this.stalls.count += 1;
    this.stalls.longestMs = Math.max(this.stalls.longestMs, Math.round(durationMs));
    this.stalls.lastAtMs = nowMs;
  }

  checkup(nowMs: number): HostCheckup {
    const { configuration, configurationIndex, isDiskOverdue, peers } = this.raft.status();
    const { voters, outgoing, learners, removed } = configuration;
    const { count, longestMs, lastAtMs } = this.stalls;
    return {
      configuration: { voters, outgoing, learners },
      configurationIndex,
      removed,
      syncs: this.syncs.summary(),
      isDiskOverdue,
      stalls: { count, longestMs, lastMsAgo: count === 0 ? null : Math.round(nowMs - lastAtMs) },
      followers: peers.map(({ id, behindEntries, heardMsAgo }) => ({
        id,
        behindEntries,
        heardMsAgo: Math.round(heardMsAgo),
      })),
    };
  }

  modeFor(name: string): Mode | null {
    return this.applier.machine.modeOf(name);
  }
}
