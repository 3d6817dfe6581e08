/**
 * THE loop. Everything that happens to this node becomes an event; one turn steps all queued events through the core, takes its
 * outputs, sends, persists and applies. Nothing in a turn awaits.
 */
import type { Command, Effect } from "@holdfast/lock";
import { Raft } from "@holdfast/raft";
import type {
  Configuration,
  Entry,
  Index,
  LogBase,
  Member,
  MembershipChange,
  Message,
  NodeId,
  Outbound,
  Output,
  Position,
  Proposal,
  RoleChange,
} from "@holdfast/raft";
import { encodeCommand } from "@holdfast/wire";
import type { NodeAddress, NodeStatus, Refusal } from "@holdfast/wire";
import { Applier } from "./applier.js";
import { AppendTimer } from "./append-timer.js";
import type { BackupSource } from "./backup-stream.js";
import { BackupTaking } from "./backup-taking.js";
import { ClientGateway } from "./client-gateway.js";
import { ClusterVersions } from "./cluster-versions.js";
import type { GatewayHost } from "./gateway-host.js";
import { LeaseKeeper } from "./lease-keeper.js";
import { Membership } from "./membership.js";
import type { ChangeResult } from "./membership.js";
import type { NodeHostOptions, NodeHostParts, StopReason } from "./node-host-types.js";
import { NodeReport } from "./node-report.js";
import { Persister } from "./persister.js";
import type { PeerEvents } from "./ports.js";
import { QuorumRounds } from "./quorum-rounds.js";
import { SnapshotKeeper } from "./snapshot-keeper.js";
import { SnapshotSource } from "./snapshot-source.js";
import { Transfers } from "./transfers.js";
import { TurnQueue } from "./turn-queue.js";
import type { ClientFrame, NodeEvent } from "./turn-queue.js";
import { TurnTimer } from "./turn-timer.js";

/** Clients' frames handled in one turn, and its time: timers, sockets and heartbeats get theirs in between. */
const framesPerTurnMax = 1_024;
const framesPerTurnMin = 32;
const turnMsMax = 10;

export class NodeHost implements PeerEvents {
  readonly gateway: ClientGateway;
  /** Resolves when the node can't go on; never rejects. */
  readonly stopped: Promise<StopReason>;
  private readonly options: NodeHostOptions;
  private readonly parts: NodeHostParts;
  private readonly raft: Raft;
  private readonly applier: Applier;
  private readonly persister: Persister;
  private readonly keeper: LeaseKeeper;
  private readonly snapshots: SnapshotKeeper;
  private readonly source: SnapshotSource;
  private readonly backup: BackupTaking;
  private readonly versions: ClusterVersions;
  private readonly membership: Membership;
  private readonly rounds: QuorumRounds = new QuorumRounds();
  private readonly reporter: NodeReport;
  private readonly appends: AppendTimer = new AppendTimer();
  private readonly startedAtMs: number;
  private readonly queue: TurnQueue = new TurnQueue();
  /** A deadline has come: it is decided when this frame has been handled. */
  private decidesAfter: number | null = null;
  private isScheduled = false;
  private isInTurn = false;
  private isStopped = false;
  private readonly timer: TurnTimer;
  private nowMs: number;
  private isServing = false;
  private knownLeader: NodeId | null = null;
  private wasLeader = false;
  private proposalId = 0;
  private readonly refusals = new Map<number, (refusal: Refusal) => void>();
  private readonly transfers: Transfers = new Transfers();
  private resolveStopped: (reason: StopReason) => void = () => {};

  constructor(options: NodeHostOptions, parts: NodeHostParts) {
    this.options = options;
    this.parts = parts;
    this.stopped = new Promise((resolve) => {
      this.resolveStopped = resolve;
    });
    this.nowMs = parts.clock.monotonicMs();
    this.startedAtMs = this.nowMs;
    this.timer = new TurnTimer(parts.clock, () => this.schedule());
    this.raft = new Raft(options.raft, { random: parts.random, codec: parts.codec }, parts.restored);
    this.membership = this.newMembership();
    this.applier = new Applier(parts.machine, parts.restored.base.position.index, options.versions, {
      onEffects: (index, effects) => this.onEffects(index, effects),
      onNoop: (entry) => this.onNoop(entry),
    });
    this.reporter = new NodeReport(
      { clusterId: options.clusterId, version: options.gateway.version, versions: options.versions },
      this.raft,
      this.applier,
      this.membership,
    );
    this.persister = new Persister({ writeBytesMax: options.writeBytesMax }, parts.store, parts.clock, {
      onPersisted: (number, send) => {
        // After a broken invariant nothing may leave the node, whatever became durable before it.
        if (this.isStopped) return;
        this.sendToPeers(send);
        this.enqueue({ kind: "persisted", number });
      },
      onOwnChunk: (chunk) => {
        const base = this.snapshots.onWritten(chunk);
        if (base === null) return this.schedule();
        this.source.noteTaken(base.position.index);
        this.backup.noteTaken(base);
        this.enqueue({ kind: "step", event: (nowMs) => ({ kind: "snapshotTaken", nowMs, base }) });
      },
      onFailed: (error) => this.stop({ kind: "storage", error }),
      onSynced: (seconds) => {
        parts.metrics.observeFsync(seconds);
        this.reporter.noteSync(1_000 * seconds);
      },
    });
    this.keeper = new LeaseKeeper({
      propose: (command, onRefused) => this.proposeOwn(command, onRefused),
      gather: (onReady, onFailed) => this.rounds.gather(onReady, onFailed),
      acknowledge: (session, number) => this.gateway.acknowledge(session, number),
    });
    this.versions = new ClusterVersions({
      self: options.raft.id,
      range: options.versions,
      configuration: () => this.raft.configuration,
      met: () => parts.links.met(),
      machine: () => this.applier.machine,
      propose: (command, onRefused) => this.proposeOwn(command, onRefused),
      logger: parts.logger,
    });
    this.snapshots = new SnapshotKeeper(options.snapshots);
    this.source = new SnapshotSource(parts.store);
    this.backup = new BackupTaking({
      begin: () => this.beginSnapshot(),
      closingMs: () => this.applier.machine.closingMs,
      pin: (index) => this.source.pin(index),
      read: (index, chunk) => this.source.read(index, chunk),
      onFailed: (error) => this.stop({ kind: "storage", error }),
    });
    this.gateway = new ClientGateway(options.gateway, this.gatewayHost(), parts.logger);
  }

  start(): void {
    this.membership.start();
    this.schedule();
  }

  // What the links tell.

  onMessages(from: NodeId, messages: readonly Message[]): void {
    this.enqueue({ kind: "peer", from, messages });
  }

  onPeerGone(peer: NodeId): void {
    this.enqueue({ kind: "peerGone", peer });
  }

  onPeerReset(peer: NodeId): void {
    this.enqueue({ kind: "peerReset", peer });
  }

  // What others may ask.

  /** The durable term and last position, for hello. */
  promises(): { readonly term: number; readonly last: Position } {
    return { term: this.raft.term, last: this.raft.lastPosition };
  }

  /** As far as this node has applied the log. */
  get clusterVersion(): number {
    return this.applier.machine.clusterVersion;
  }

  /** The newest configuration that this node knows to be committed. */
  get committedConfiguration(): Configuration {
    return this.membership.committed;
  }

  /** For metrics. */
  get report(): NodeReport {
    return this.reporter;
  }

  status(): NodeStatus {
    return this.reporter.status(this.parts.clock.monotonicMs() - this.startedAtMs);
  }

  /** A consistent state of this node, as of now or later, on its disk. Rejects with BackupRefusedError. */
  async takeBackup(): Promise<BackupSource> {
    this.schedule();
    const { clusterId, raft } = this.options;
    const { base, closingMs, ...reading } = await this.backup.take();
    const takenAtMs = Math.round(this.parts.clock.wallMs());
    return { header: { clusterId, nodeId: raft.id, base, takenAtMs, closingMs }, ...reading };
  }

  /** A hash of the lock machine: equal on all nodes at equal lastApplied. Costs a walk over all of it. */
  stateHash(): string {
    return String(this.applier.machine.stateHash());
  }

  /** Ready: it knows a leader and has applied what it knows to be committed. */
  health(): { readonly isLive: boolean; readonly isReady: boolean; readonly problem: string | null } {
    if (this.isStopped) return { isLive: false, isReady: false, problem: "the node is stopping" };
    const problem = this.reporter.problem();
    return { isLive: true, isReady: problem === null, problem };
  }

  /** Hands leadership over if it has it, and waits until what was promised is on the disk. Bounded by two election timeouts. */
  async transferAndStop(): Promise<void> {
    const untilMs = 2 * this.options.raft.electionTimeoutMsMin;
    if (this.raft.role === "leader" && this.raft.configuration.voters.some(({ id }) => id !== this.raft.id)) {
      const transferred = new Promise<void>((resolve) => {
        this.beginTransfer(null, untilMs, () => resolve());
      });
      // A disk that fails meanwhile ends all turns, and the transfer with them.
      await Promise.race([transferred, this.stopped]);
    }
    await this.persister.whenWritten();
    this.stop({ kind: "asked" });
  }

  // The turn.

  private enqueue(event: NodeEvent): void {
    if (this.isStopped) return;
    this.queue.push(event);
    this.schedule();
  }

  private enqueueFrame(frame: ClientFrame): void {
    if (this.isStopped) return;
    this.queue.pushFrame(frame);
    this.schedule();
  }

  /** A turn runs after the sockets that are readable now have been read once. */
  private schedule(): void {
    if (this.isScheduled || this.isInTurn || this.isStopped) return;
    this.isScheduled = true;
    this.parts.clock.setImmediate(() => {
      this.isScheduled = false;
      this.guardedTurn();
    });
  }

  /** A broken invariant ends the process: nothing that happens after it can be trusted. */
  private guardedTurn(): void {
    if (this.isStopped) return;
    this.isInTurn = true;
    try {
      this.turn();
    } catch (error) {
      this.stop({ kind: "internal", error });
    } finally {
      this.isInTurn = false;
    }
    if (this.isStopped) return;
    // A turn may be the stall itself: the timer that it has held up is about to be set anew.
    this.nowMs = this.parts.clock.monotonicMs();
    this.noteStall();
    if (!this.queue.isEmpty || this.raft.hasOutput()) this.schedule();
    this.armTimer();
  }

  private turn(): void {
    this.nowMs = this.parts.clock.monotonicMs();
    this.noteStall();
    const isTimerDue = this.timer.takeDue();
    for (const event of this.queue.takeEvents()) this.handleEvent(event);
    this.handleFrames();
    if (this.nowMs >= this.raft.nextDeadlineMs()) this.raft.step({ kind: "tick", nowMs: this.nowMs });
    this.maybeDecide(isTimerDue);
    if (this.isServing) this.versions.maybeBegin();
    this.advance();
    this.transfers.settle(this.nowMs, () => (this.isLeader() ? null : this.reporter.leader()));
    this.advanceSnapshot();
  }

  /**
   * All sockets were read once since the timer fired. Nothing is decided while a keepalive may wait that was read by then; but frames that
   * came later don't count, or a flood of them would keep every dead holder's lock.
   */
  private maybeDecide(isTimerDue: boolean): void {
    if (this.decidesAfter === null && (isTimerDue || this.keeper.nextDeadlineMs() === 0)) {
      this.decidesAfter = this.queue.newestFrame;
    }
    if (this.decidesAfter === null || !this.queue.hasTaken(this.decidesAfter)) return;
    this.decidesAfter = null;
    this.keeper.decide(this.nowMs);
  }

  private handleEvent(event: NodeEvent): void {
    const { nowMs, raft } = this;
    switch (event.kind) {
      case "peer":
        for (const message of event.messages) {
          raft.step({ kind: "received", nowMs, from: event.from, message });
          this.noteAnswer(event.from, message);
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

  private handleFrames(): void {
    for (let count = 0; count < framesPerTurnMax; count += 1) {
      // Clients get on too when the rest of the turn takes long.
      if (count >= framesPerTurnMin && this.isTurnLong) return;
      const frame = this.queue.takeFrame();
      if (frame === undefined) return;
      this.gateway.handleFrame(frame.connection, frame.messages);
    }
  }

  private get isTurnLong(): boolean {
    return this.parts.clock.monotonicMs() - this.nowMs > turnMsMax;
  }

  /**
   * Outputs and what follows from them: applied entries answer rounds, answers propose renewals, and so on until all is quiet. A backlog of
   * committed entries comes in many outputs; those that make the turn too long are left to the next one.
   */
  private advance(): void {
    for (let rounds = 0; rounds < 64; rounds += 1) {
      this.keeper.flush();
      const confirm = this.rounds.begin();
      if (confirm !== null) this.raft.step({ kind: "confirm", nowMs: this.nowMs, id: confirm });
      const output = this.raft.takeOutput();
      if (output === null) return;
      this.handleOutput(output);
      if (this.isTurnLong && this.raft.hasOutput()) return;
    }
  }

  private handleOutput(output: Output): void {
    this.sendToPeers(output.send);
    if (output.chunk !== null) this.applier.receive(output.chunk);
    this.persister.enqueue(output);
    for (const { id, code } of output.refused) {
      const refuse = this.refusals.get(id);
      this.refusals.delete(id);
      refuse?.(code === "overloaded" ? { code } : { code, leader: this.reporter.leader() });
    }
    // What was not refused is in the log; its outcome comes from there.
    this.refusals.clear();
    for (const change of output.roleChanges) this.onRoleChange(change);
    for (const { id, index } of output.confirmed) this.rounds.onConfirmed(id, index);
    for (const id of output.unconfirmed) this.rounds.onUnconfirmed(id);
    if (output.install !== null) {
      this.snapshots.abandon();
      this.backup.noteAbandoned();
      this.applier.install(output.install);
      this.parts.logger.info({ index: output.install.position.index, term: this.raft.term }, "snapshot installed");
    }
    this.membership.noteOutput(output);
    if (output.configuration !== null) this.onMembers(output.configuration);
    const bytes = this.applier.apply(output.committed);
    this.snapshots.noteApplied(output.committed.length, bytes);
    this.versions.noteApplied();
    this.rounds.onApplied(this.applier.lastApplied);
    for (const read of output.snapshotReads) this.readSnapshot(read.to, read.base, read.chunk);
    if (output.isRemoved) this.stop({ kind: "removed" });
  }

  private newMembership(): Membership {
    const { raft, parts, options } = this;
    return new Membership({
      clusterId: options.clusterId,
      raft,
      codec: parts.codec,
      links: parts.links,
      electionTimeoutMs: options.raft.electionTimeoutMsMin,
      versions: options.versions,
      snapshotChunks: (index) => this.source.chunksOf(index),
    });
  }

  private onMembers({ voters, outgoing, learners }: Configuration): void {
    const idsOf = (members: readonly Member[]): NodeId[] => members.map(({ id }) => id);
    const facts = { voters: idsOf(voters), outgoing: idsOf(outgoing), learners: idsOf(learners) };
    this.parts.logger.info({ ...facts, index: this.raft.status().configurationIndex }, "the members have changed");
    this.gateway.onNodes();
  }

  private sendToPeers(messages: readonly Outbound[]): void {
    if (messages.length === 0) return;
    const byPeer = new Map<NodeId, Message[]>();
    for (const { to, message } of messages) {
      this.appends.onSent(to, message, this.nowMs);
      const others = byPeer.get(to);
      if (others === undefined) byPeer.set(to, [message]);
      else others.push(message);
    }
    for (const [to, all] of byPeer) this.parts.links.send(to, all);
  }

  // Time.

  /** The armed timer is late by more than half an election timeout: the loop was stuck, and nobody could be heard. */
  private noteStall(): void {
    const lateMs = this.timer.lateMs(this.nowMs);
    if (lateMs <= this.options.raft.electionTimeoutMsMin / 2) return;
    this.timer.restart(this.nowMs);
    this.keeper.noteStall(lateMs);
    this.reporter.noteStall(lateMs, this.nowMs);
    this.parts.logger.warn({ durationMs: Math.round(lateMs), term: this.raft.term }, "the loop was stalled");
  }

  private armTimer(): void {
    this.timer.arm(Math.min(this.raft.nextDeadlineMs(), this.keeper.nextDeadlineMs(), this.transfers.nextDeadlineMs));
  }

  // Proposals and their fate.

  private propose(
    payload: Uint8Array,
    reserved: boolean,
    decidedInTerm: Proposal["decidedInTerm"],
    onRefused: (refusal: Refusal) => void,
  ): void {
    this.proposalId += 1;
    const id = this.proposalId;
    this.refusals.set(id, onRefused);
    this.raft.step({ kind: "propose", nowMs: this.nowMs, proposal: { id, payload, reserved, decidedInTerm } });
  }

  private proposeOwn(command: Command, onRefused: (refusal: Refusal) => void): void {
    this.proposeCommand(command, encodeCommand(command), true, this.raft.term, onRefused);
  }

  private proposeCommand(
    command: Command,
    payload: Uint8Array,
    reserved: boolean,
    decidedInTerm: Proposal["decidedInTerm"],
    onRefused: (refusal: Refusal) => void,
  ): void {
    const refusal = this.versions.gate(command.kind);
    if (refusal === null) this.propose(payload, reserved, decidedInTerm, onRefused);
    else onRefused(refusal);
  }

  private onEffects(index: Index, effects: readonly Effect[]): void {
    this.parts.metrics.noteEffects(effects, this.isServing);
    // What a new leader still has to apply of earlier terms answers nobody: it may be older than the question.
    if (!this.isServing) return;
    this.keeper.onEffects(effects, this.nowMs);
    this.gateway.onEffects(index, effects);
  }

  private onNoop(entry: Entry): void {
    if (!this.isLeader() || entry.term !== this.raft.term) return;
    this.isServing = true;
    this.keeper.start(this.applier.machine, this.nowMs);
    this.parts.logger.info({ term: entry.term, index: entry.index }, "serving as leader");
    this.gateway.onServing();
  }

  private onRoleChange(change: RoleChange): void {
    const { role, term, leader, reason } = change;
    this.parts.logger.info({ role, term, leader, index: this.raft.lastIndex, reason }, `${role} in term ${term}`);
    this.parts.metrics.noteRole(role);
    const lostLeadership = this.wasLeader && role !== "leader";
    if (lostLeadership) {
      this.isServing = false;
      this.keeper.stop();
      this.rounds.failAll();
      this.appends.clear();
      this.versions.onLeadershipLost();
    }
    if (leader !== this.knownLeader || lostLeadership) {
      this.knownLeader = leader;
      this.gateway.onLeaderChanged(lostLeadership);
    }
    this.wasLeader = role === "leader";
  }

  private isLeader(): boolean {
    return this.raft.role === "leader";
  }

  /** In a turn. */
  private changeMembers(change: MembershipChange, isForced: boolean, onEnded: (result: ChangeResult) => void): void {
    const id = this.membership.begin(onEnded);
    this.raft.step({ kind: "changeMembers", nowMs: this.nowMs, id, change, isForced });
  }

  private beginTransfer(to: NodeId | null, withinMs: number, onEnded: (leader: NodeAddress | null) => void): void {
    this.transfers.add(this.parts.clock.monotonicMs() + withinMs, onEnded);
    this.enqueue({ kind: "step", event: (nowMs) => ({ kind: "transfer", nowMs, to }) });
  }

  // Snapshots.

  private advanceSnapshot(): void {
    if (!this.snapshots.isTaking) this.backup.advance(this.parts.store.snapshot, this.applier.lastApplied);
    if (this.snapshots.isDue) this.beginSnapshot();
    const chunk = this.snapshots.next(this.raft.persistedIndex);
    if (chunk !== null) this.persister.enqueueOwnChunk(chunk);
    if (!this.source.isRemovalDue) return;
    const through = this.source.takeRemovable(this.raft.status(), this.options.raft.electionTimeoutMsMin);
    if (through !== null) this.persister.enqueueRemoval(through);
  }

  private beginSnapshot(): LogBase {
    const base = this.raft.baseAt(this.applier.lastApplied);
    this.snapshots.begin(this.applier.machine, base);
    return base;
  }

  private readSnapshot(to: NodeId, base: LogBase, chunk: number): void {
    // A log that begins above 1 has no snapshot at its beginning, and a node that begins below it needs one.
    const hasNone = this.parts.store.snapshot === null && this.applier.lastApplied > this.raft.snapshotIndex;
    if (hasNone && !this.snapshots.isTaking) this.beginSnapshot();
    this.source.read(base.position.index, chunk).then(
      ({ bytes, done }) =>
        this.enqueue({
          kind: "step",
          event: (nowMs) => ({ kind: "snapshotRead", nowMs, to, base, chunk, bytes, done }),
        }),
      (error: unknown) => this.stop({ kind: "storage", error }),
    );
  }

  // Small look-ups.

  /** Only the leader that it was sent to has the very entries that it speaks of; in any other log others may stand there. */
  private noteAnswer(from: NodeId, message: Message): void {
    if (message.kind !== "appendAccepted" || message.term !== this.raft.term || !this.isLeader()) return;
    const term = this.raft.termAt(message.matchIndex);
    if (term === null) return;
    this.appends.onReceived(from, message, this.nowMs, (seconds) => this.parts.metrics.observeAppend(from, seconds));
    this.parts.links.notePromise(from, { term: message.term, last: { term, index: message.matchIndex } });
  }

  private gatewayHost(): GatewayHost {
    const host = this;
    return {
      get machine() {
        return host.applier.machine;
      },
      get isLeader() {
        return host.isLeader();
      },
      get isServing() {
        return host.isServing;
      },
      get leader() {
        return host.reporter.leader();
      },
      get nodes() {
        return host.reporter.nodes();
      },
      get lastApplied() {
        return host.applier.lastApplied;
      },
      clusterId: host.options.clusterId,
      status: () => host.status(),
      proposeClients: (command, payload, reserved, onRefused) =>
        host.proposeCommand(command, payload, reserved, null, onRefused),
      proposeForced: (command, onRefused) =>
        host.proposeCommand(command, encodeCommand(command), true, null, onRefused),
      proposeOwn: (command, onRefused) => host.proposeOwn(command, onRefused),
      raisableTo: () => host.versions.target(),
      gather: (onReady, onFailed) => host.rounds.gather(onReady, onFailed),
      keepalive: (session, number) => host.keeper.onKeepalive(session, number, host.nowMs),
      members: () => host.membership.view(),
      changeMembers: (change, isForced, onEnded) => host.changeMembers(change, isForced, onEnded),
      transfer: (to, onEnded) => host.beginTransfer(to, 2 * host.options.raft.electionTimeoutMsMin, onEnded),
      enqueue: (connection, messages) => host.enqueueFrame({ connection, messages }),
    };
  }

  private stop(reason: StopReason): void {
    if (this.isStopped) return;
    this.isStopped = true;
    this.timer.cancel();
    this.keeper.stop();
    this.backup.stop();
    this.resolveStopped(reason);
  }
}

function assertNever(value: never): never {
  throw new Error(`unexpected value ${JSON.stringify(value)}`);
}
