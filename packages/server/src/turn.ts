/**
 * One turn: steps all queued events through the core, takes its outputs, sends, persists and applies. Nothing in it awaits.
 */
import type { Configuration, LogBase, Member, NodeId, Output, Raft } from "@holdfast/raft";
import type { Applier } from "./applier.js";
import type { ClientGateway } from "./client-gateway.js";
import type { ClusterVersions } from "./cluster-versions.js";
import type { ConfirmedAnswers } from "./confirmed-answers.js";
import type { Leadership } from "./leadership.js";
import type { LeaseKeeper } from "./lease-keeper.js";
import type { Membership } from "./membership.js";
import type { NodeReport } from "./node-report.js";
import type { NodeSnapshots } from "./node-snapshots.js";
import type { PeerTraffic } from "./peer-traffic.js";
import type { Persister } from "./persister.js";
import type { Logger } from "./ports.js";
import type { Proposals } from "./proposals.js";
import type { QuorumRounds } from "./quorum-rounds.js";
import type { SigningKeys } from "./signing-keys.js";
import type { Transfers } from "./transfers.js";
import type { TurnLoop } from "./turn-loop.js";
import type { NodeEvent, TurnQueue } from "./turn-queue.js";

/** Clients' messages handled in one turn, however long they take: clients get on too when the rest of the turn takes long. */
const messagesPerTurnMin = 32;
/** Handled in one turn, however short they take: their outputs are one batch for the disk and for each peer. */
const messagesPerTurnMax = 4_096;

export interface TurnParts {
  readonly loop: Pick<TurnLoop, "nowMs" | "isTurnLong" | "share">;
  readonly queue: TurnQueue;
  readonly raft: Raft;
  readonly membership: Membership;
  readonly applier: Applier;
  readonly reporter: NodeReport;
  readonly peers: PeerTraffic;
  readonly persister: Persister;
  readonly snapshots: NodeSnapshots;
  readonly rounds: QuorumRounds;
  readonly answers: ConfirmedAnswers;
  readonly keeper: LeaseKeeper;
  readonly versions: ClusterVersions;
  readonly signingKeys: SigningKeys;
  readonly proposals: Proposals;
  readonly leadership: Leadership;
  readonly transfers: Transfers;
  readonly gateway: ClientGateway;
  readonly logger: Logger;
  /** This node's removal from the cluster is committed. */
  onRemoved(): void;
}

export class Turn {
  private readonly parts: TurnParts;
  /** A deadline has come: what is due by `atMs` is decided when that frame has been handled, and that answer given. */
  private decision: { readonly afterFrame: number; readonly afterAnswer: number; readonly atMs: number } | null = null;
  /** This node's removal is committed: it ends when all that came before is applied. */
  private isRemoved = false;

  constructor(parts: TurnParts) {
    this.parts = parts;
  }

  /** `isTimerDue`: the timer has fired since the last turn. Throws when an invariant is broken. */
  run(isTimerDue: boolean): void {
    const { queue, raft, leadership, transfers, reporter, snapshots, gateway } = this.parts;
    const { nowMs } = this.parts.loop;
    for (const event of queue.takeEvents()) this.handleEvent(event, nowMs);
    this.handleClients();
    if (nowMs >= raft.nextDeadlineMs()) raft.step({ kind: "tick", nowMs });
    this.maybeDecide(isTimerDue, nowMs);
    const { isServing } = leadership;
    if (isServing) this.maybeBegin();
    this.advance(nowMs);
    if (!isServing && leadership.isServing) this.maybeBegin();
    transfers.settle(nowMs, () => (leadership.isLeader ? null : reporter.leader()));
    snapshots.advance();
    gateway.intake.resume();
  }

  /** What a leader sees to itself when it is missing. */
  private maybeBegin(): void {
    const { versions, signingKeys, gateway } = this.parts;
    versions.maybeBegin();
    signingKeys.maybeBegin();
    gateway.releaseEarly();
  }

  private handleEvent(event: NodeEvent, nowMs: number): void {
    const { raft, peers } = this.parts;
    switch (event.kind) {
      case "peer":
        for (const message of event.messages) {
          raft.step({ kind: "received", nowMs, from: event.from, message });
          peers.noteAnswer(event.from, message);
        }
        return;
      case "persisted":
        raft.step({ kind: "persisted", nowMs, number: event.number });
        return;
      case "peerGone":
      case "peerReset":
        raft.step({ kind: event.kind, nowMs, peer: event.peer });
        return;
      case "step":
        raft.step(event.event(nowMs));
        return;
      default:
        assertNever(event);
    }
  }

  private handleClients(): void {
    const { loop, queue, gateway } = this.parts;
    for (let count = 0; count < messagesPerTurnMax; ) {
      if (count >= messagesPerTurnMin && loop.isTurnLong) return;
      const share = queue.clients.takeShare();
      if (share === undefined) return;
      count += Math.max(1, share.messages.length);
      gateway.handle(share);
    }
  }

  /**
   * All sockets were read once since the timer fired. Nothing is decided while a keepalive may wait that was read by then, in a frame or
   * with a resume; but what came later doesn't count, or a flood of it would keep every dead holder's lock.
   */
  private maybeDecide(isTimerDue: boolean, nowMs: number): void {
    const { keeper, queue, answers } = this.parts;
    if (this.decision === null && (isTimerDue || keeper.nextDeadlineMs() === 0)) {
      this.decision = { afterFrame: queue.clients.newestFrame, afterAnswer: answers.newestOfLeases, atMs: nowMs };
    }
    if (this.decision === null) return;
    const { afterFrame, afterAnswer, atMs } = this.decision;
    if (!queue.clients.hasTaken(afterFrame) || !answers.hasGiven(afterAnswer)) return;
    this.decision = null;
    keeper.decide(atMs);
  }

  /**
   * Outputs and what follows from them: applied entries answer rounds, answers propose renewals, and so on until all is quiet. What makes
   * the turn too long is left to the next one.
   */
  private advance(nowMs: number): void {
    const { loop, keeper, raft, rounds, applier, answers } = this.parts;
    const isLong = loop.share();
    for (let times = 0; times < 64; times += 1) {
      keeper.flush();
      const confirm = rounds.begin(nowMs);
      if (confirm !== null) raft.step({ kind: "confirm", nowMs, id: confirm });
      const output = raft.takeOutput();
      if (output === null && !applier.hasBacklog && answers.isEmpty) return;
      if (output !== null) this.handleOutput(output);
      this.apply(isLong);
      answers.give(isLong);
      // Else what the last of it has asked for is seen to now: nothing else would bring the next turn.
      if (isLong() && (raft.hasOutput() || applier.hasBacklog || !answers.isEmpty)) return;
    }
  }

  private handleOutput(output: Output): void {
    const { peers, persister, proposals, leadership, rounds, membership, snapshots, applier } = this.parts;
    peers.send(output.send);
    if (output.chunk !== null) applier.receive(output.chunk);
    persister.enqueue(output);
    proposals.settle(output.refused);
    for (const change of output.roleChanges) leadership.onRoleChange(change);
    for (const { id, index } of output.confirmed) rounds.onConfirmed(id, index);
    for (const id of output.unconfirmed) rounds.onUnconfirmed(id);
    if (output.install !== null) this.install(output.install);
    membership.noteOutput(output);
    if (output.configuration !== null) this.onMembers(output.configuration);
    applier.push(output.committed);
    for (const read of output.snapshotReads) snapshots.read(read);
    this.isRemoved ||= output.isRemoved;
  }

  private apply(isLong: () => boolean): void {
    const { applier, snapshots, versions, rounds } = this.parts;
    const { entries, bytes } = applier.apply(isLong);
    snapshots.noteApplied(entries, bytes);
    versions.noteApplied();
    rounds.onApplied(applier.lastApplied);
    if (this.isRemoved && !applier.hasBacklog) this.parts.onRemoved();
  }

  private install(base: LogBase): void {
    const { snapshots, applier, logger, raft, gateway } = this.parts;
    snapshots.onInstall();
    applier.install(base);
    gateway.onInstalled(applier.lastApplied);
    logger.info({ index: base.position.index, term: raft.term }, "snapshot installed");
  }

  private onMembers({ voters, outgoing, learners }: Configuration): void {
    const { logger, raft, gateway } = this.parts;
    const idsOf = (members: readonly Member[]): NodeId[] => members.map(({ id }) => id);
    const facts = { voters: idsOf(voters), outgoing: idsOf(outgoing), learners: idsOf(learners) };
    logger.info({ ...facts, index: raft.status().configurationIndex }, "the members have changed");
    gateway.onNodes();
  }
}

function assertNever(value: never): never {
  throw new Error(`unexpected value ${JSON.stringify(value)}`);
}
