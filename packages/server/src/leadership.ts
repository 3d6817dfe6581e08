/** What begins and ends with this node's leadership, and what a leader alone does with applied entries. */
import type { Effect } from "@holdfast/lock";
import type { Entry, Index, NodeId, Raft, RoleChange } from "@holdfast/raft";
import type { Applier } from "./applier.js";
import type { ClientGateway } from "./client-gateway.js";
import type { ClusterVersions } from "./cluster-versions.js";
import type { ConfirmedAnswers } from "./confirmed-answers.js";
import type { LeaseKeeper } from "./lease-keeper.js";
import type { HostMetrics } from "./node-host-types.js";
import type { PeerTraffic } from "./peer-traffic.js";
import type { Logger } from "./ports.js";
import type { QuorumRounds } from "./quorum-rounds.js";
import type { SigningKeys } from "./signing-keys.js";
import type { TurnLoop } from "./turn-loop.js";

export interface LeadershipParts {
  readonly loop: Pick<TurnLoop, "nowMs">;
  readonly raft: Raft;
  readonly applier: Applier;
  readonly keeper: LeaseKeeper;
  readonly rounds: QuorumRounds;
  readonly answers: ConfirmedAnswers;
  readonly peers: PeerTraffic;
  readonly versions: ClusterVersions;
  readonly signingKeys: SigningKeys;
  readonly gateway: ClientGateway;
  readonly metrics: HostMetrics;
  readonly logger: Logger;
}

export class Leadership {
  private readonly parts: LeadershipParts;
  private serves = false;
  private wasLeader = false;
  private knownLeader: NodeId | null = null;

  constructor(parts: LeadershipParts) {
    this.parts = parts;
  }

  get isLeader(): boolean {
    return this.parts.raft.role === "leader";
  }

  /** Leads, and its own term's no-op is applied: its state is no older than any answer given before. */
  get isServing(): boolean {
    return this.serves;
  }

  onEffects(index: Index, effects: readonly Effect[]): void {
    const { loop, metrics, keeper, gateway } = this.parts;
    metrics.noteEffects(effects, this.serves);
    gateway.onApplied(index, effects);
    // What a new leader still has to apply of earlier terms answers nobody: it may be older than the question.
    if (!this.serves) return;
    keeper.onEffects(effects, loop.nowMs);
    gateway.onEffects(index, effects);
  }

  onNoop(entry: Entry): void {
    const { loop, raft, applier, keeper, gateway, logger } = this.parts;
    if (!this.isLeader || entry.term !== raft.term) return;
    this.serves = true;
    keeper.start(applier.machine, loop.nowMs);
    logger.info({ term: entry.term, index: entry.index }, "serving as leader");
    gateway.onServing();
  }

  onRoleChange({ role, term, leader, reason }: RoleChange): void {
    const { raft, gateway, metrics, logger } = this.parts;
    logger.info({ role, term, leader, index: raft.lastIndex, reason }, `${role} in term ${term}`);
    metrics.noteRole(role);
    const isLost = this.wasLeader && role !== "leader";
    if (isLost) this.end();
    if (leader !== this.knownLeader || isLost) {
      this.knownLeader = leader;
      gateway.onLeaderChanged(isLost);
    }
    this.wasLeader = role === "leader";
  }

  private end(): void {
    const { keeper, rounds, answers, peers, versions, signingKeys } = this.parts;
    this.serves = false;
    keeper.stop();
    rounds.failAll();
    answers.failAll();
    peers.forgetAppends();
    versions.onLeadershipLost();
    signingKeys.onLeadershipLost();
  }
}
