/**
 * A node behind its ports: what comes in waits in one queue for the next turn (turn.ts), and here its parts are put together.
 */
import type { PublicKey } from "@holdfast/lock";
import { Raft } from "@holdfast/raft";
import type { Configuration, Event, MembershipChange, Message, NodeId, Position } from "@holdfast/raft";
import type { NodeAddress, NodeStatus } from "@holdfast/wire";
import { Applier } from "./applier.js";
import { ApplyLag } from "./apply-lag.js";
import type { BackupSource } from "./backup-stream.js";
import { ClientGateway } from "./client-gateway.js";
import { ClusterVersions } from "./cluster-versions.js";
import { ConfirmedAnswers } from "./confirmed-answers.js";
import type { GatewayHost } from "./gateway-host.js";
import { Leadership } from "./leadership.js";
import { LeaseKeeper } from "./lease-keeper.js";
import { Membership } from "./membership.js";
import type { ChangeResult } from "./membership.js";
import type { NodeHostOptions, NodeHostParts, StopReason } from "./node-host-types.js";
import { NodeReport } from "./node-report.js";
import { NodeSnapshots } from "./node-snapshots.js";
import { PeerTraffic } from "./peer-traffic.js";
import { Persister } from "./persister.js";
import type { ClientConnection, ClientFrame, PeerEvents } from "./ports.js";
import { Proposals } from "./proposals.js";
import { QuorumRounds } from "./quorum-rounds.js";
import { SigningKeys } from "./signing-keys.js";
import { Transfers } from "./transfers.js";
import { Turn } from "./turn.js";
import { TurnLoop } from "./turn-loop.js";
import { TurnQueue } from "./turn-queue.js";
import type { NodeEvent } from "./turn-queue.js";

export class NodeHost implements PeerEvents {
  readonly gateway: ClientGateway;
  /** Resolves when the node can't go on; never rejects. */
  readonly stopped: Promise<StopReason>;
  private readonly options: NodeHostOptions;
  private readonly parts: NodeHostParts;
  private readonly loop: TurnLoop;
  private readonly queue: TurnQueue = new TurnQueue();
  private readonly applyLag: ApplyLag;
  private readonly raft: Raft;
  private readonly membership: Membership;
  private readonly applier: Applier;
  private readonly reporter: NodeReport;
  private readonly peers: PeerTraffic;
  private readonly persister: Persister;
  private readonly snapshots: NodeSnapshots;
  private readonly rounds: QuorumRounds = new QuorumRounds();
  private readonly answers: ConfirmedAnswers = new ConfirmedAnswers(this.rounds);
  private readonly keeper: LeaseKeeper;
  private readonly versions: ClusterVersions;
  private readonly signingKeys: SigningKeys;
  private readonly proposals: Proposals;
  private readonly leadership: Leadership;
  private readonly transfers: Transfers = new Transfers();
  private readonly turn: Turn;
  private readonly startedAtMs: number;
  private resolveStopped: (reason: StopReason) => void = () => {};

  constructor(options: NodeHostOptions, parts: NodeHostParts) {
    this.options = options;
    this.parts = parts;
    this.stopped = new Promise((resolve) => {
      this.resolveStopped = resolve;
    });
    this.loop = this.newLoop();
    this.applyLag = new ApplyLag(options.unappliedEntriesMax);
    this.startedAtMs = this.loop.nowMs;
    this.raft = new Raft(options.raft, { random: parts.random, codec: parts.codec }, parts.restored);
    this.membership = this.newMembership();
    this.applier = new Applier(parts.machine, parts.restored.base.position.index, options.versions, {
      onEffects: (index, effects) => this.leadership.onEffects(index, effects),
      onNoop: (entry) => this.leadership.onNoop(entry),
    });
    this.reporter = new NodeReport(
      { clusterId: options.clusterId, version: options.gateway.version, versions: options.versions },
      this.raft,
      this.applier,
      this.membership,
    );
    this.persister = this.newPersister();
    this.snapshots = this.newSnapshots();
    this.keeper = new LeaseKeeper({
      propose: (command, onRefused) => this.proposals.proposeOwn(command, onRefused),
      gather: (onReady, onFailed) => this.rounds.gatherPatiently(onReady, onFailed),
      gatherExpiry: (onReady, onFailed) => this.answers.gatherExpiry(onReady, onFailed),
      acknowledge: (session, number) => this.gateway.acknowledge(session, number),
    });
    this.versions = this.newVersions();
    this.signingKeys = this.newSigningKeys();
    const { loop, raft, applier, keeper, rounds, answers, versions, signingKeys } = this;
    const { links, metrics, logger } = parts;
    const leader = (): NodeAddress | null => this.reporter.leader();
    this.proposals = new Proposals({ loop, raft, leader, gate: (kind) => versions.gate(kind) });
    this.peers = new PeerTraffic({ loop, raft, links, metrics });
    this.gateway = new ClientGateway(options.gateway, this.gatewayHost(), logger);
    const { peers, gateway } = this;
    const works = { applier, keeper, rounds, answers, peers, versions, signingKeys, gateway };
    this.leadership = new Leadership({ loop, raft, metrics, logger, ...works });
    this.turn = this.newTurn();
  }

  start(): void {
    this.membership.start();
    this.loop.schedule();
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

  /** The current one first, as far as this node has applied the log. */
  publicKeys(): PublicKey[] {
    return this.applier.machine.publicKeys();
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
    const { clusterId, raft } = this.options;
    const { base, closingMs, ...reading } = await this.snapshots.takeBackup();
    const takenAtMs = Math.round(this.parts.clock.wallMs());
    return { header: { clusterId, nodeId: raft.id, base, takenAtMs, closingMs }, ...reading };
  }

  /** Whether a session of that id lives, as far as this node has applied the log. */
  hasSession(session: number): boolean {
    return this.applier.machine.sessionView(session) !== null;
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

  // What comes in waits for the next turn.

  private enqueue(event: NodeEvent): void {
    if (this.isStopped) return;
    this.queue.push(event);
    this.loop.schedule();
  }

  private enqueueStep(event: (nowMs: number) => Event): void {
    this.enqueue({ kind: "step", event });
  }

  private enqueueFrame(connection: ClientConnection, frame: ClientFrame): void {
    if (this.isStopped) return;
    this.queue.clients.push(connection, frame);
    this.loop.schedule();
  }

  // What clients ask of this node, and not of the lock machine.

  /** In a turn. */
  private changeMembers(change: MembershipChange, isForced: boolean, onEnded: (result: ChangeResult) => void): void {
    const id = this.membership.begin(onEnded);
    this.raft.step({ kind: "changeMembers", nowMs: this.loop.nowMs, id, change, isForced });
  }

  private beginTransfer(to: NodeId | null, withinMs: number, onEnded: (leader: NodeAddress | null) => void): void {
    this.transfers.add(this.parts.clock.monotonicMs() + withinMs, onEnded);
    this.enqueueStep((nowMs) => ({ kind: "transfer", nowMs, to }));
  }

  // Stalls and the end.

  private onStall(lateMs: number): void {
    this.keeper.noteStall(lateMs);
    this.reporter.noteStall(lateMs, this.loop.nowMs);
    this.parts.logger.warn({ durationMs: Math.round(lateMs), term: this.raft.term }, "the loop was stalled");
  }

  private get isStopped(): boolean {
    return this.loop.isStopped;
  }

  private stop(reason: StopReason): void {
    if (this.isStopped) return;
    this.loop.stop();
    this.keeper.stop();
    this.snapshots.stop();
    this.resolveStopped(reason);
  }

  // The parts, and how they reach one another.

  private newLoop(): TurnLoop {
    const stallMs = this.options.raft.electionTimeoutMsMin / 2;
    return new TurnLoop({ stallMs }, this.parts.clock, {
      turn: (isTimerDue) => {
        this.applyLag.note(this.raft.lastIndex, this.applier.lastApplied, this.loop.nowMs);
        this.turn.run(isTimerDue);
      },
      hasMore: () =>
        !this.queue.isEmpty ||
        this.raft.hasOutput() ||
        this.applier.hasBacklog ||
        !this.answers.isEmpty ||
        this.gateway.intake.hasPaused,
      nextDeadlineMs: () =>
        Math.min(
          this.raft.nextDeadlineMs(),
          this.keeper.nextDeadlineMs(),
          this.rounds.nextDeadlineMs(),
          this.transfers.nextDeadlineMs,
        ),
      onStall: (lateMs) => this.onStall(lateMs),
      // The process ends: nothing that happens after it can be trusted.
      onBroken: (error) => this.stop({ kind: "internal", error }),
    });
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
      snapshotChunks: (index) => this.snapshots.chunksOf(index),
    });
  }

  private newPersister(): Persister {
    const { store, clock, metrics } = this.parts;
    return new Persister({ writeBytesMax: this.options.writeBytesMax }, store, clock, {
      onPersisted: (number, send) => {
        // After a broken invariant nothing may leave the node, whatever became durable before it.
        if (this.isStopped) return;
        this.peers.send(send);
        this.enqueue({ kind: "persisted", number });
      },
      onOwnChunk: (chunk) => this.snapshots.onOwnChunk(chunk),
      onFailed: (error) => this.stop({ kind: "storage", error }),
      onSynced: (seconds) => {
        metrics.observeFsync(seconds);
        this.reporter.noteSync(1_000 * seconds);
      },
    });
  }

  private newSnapshots(): NodeSnapshots {
    const { raft, applier, persister } = this;
    const { store } = this.parts;
    const options = { ...this.options.snapshots, heardWithinMs: this.options.raft.electionTimeoutMsMin };
    return new NodeSnapshots(
      options,
      { raft, applier, store, persister },
      {
        step: (event) => this.enqueueStep(event),
        schedule: () => this.loop.schedule(),
        onFailed: (error) => this.stop({ kind: "storage", error }),
      },
    );
  }

  private newVersions(): ClusterVersions {
    const { options, parts } = this;
    return new ClusterVersions({
      self: options.raft.id,
      range: options.versions,
      waitMs: 4 * options.raft.electionTimeoutMsMin,
      nowMs: () => this.loop.nowMs,
      configuration: () => this.raft.configuration,
      met: () => parts.links.met(),
      machine: () => this.applier.machine,
      propose: (command, onRefused) => this.proposals.proposeOwn(command, onRefused),
      logger: parts.logger,
    });
  }

  private newSigningKeys(): SigningKeys {
    return new SigningKeys({
      machine: () => this.applier.machine,
      drawSeed: () => this.parts.drawSeed(),
      propose: (command, onRefused) => this.proposals.proposeOwn(command, onRefused),
    });
  }

  private newTurn(): Turn {
    const { loop, queue, raft, membership, applier, reporter, peers, persister, snapshots, rounds, answers } = this;
    const { keeper, versions, signingKeys, proposals, leadership, transfers, gateway } = this;
    const { logger } = this.parts;
    const onRemoved = (): void => this.stop({ kind: "removed" });
    return new Turn({
      loop,
      queue,
      raft,
      membership,
      applier,
      reporter,
      peers,
      persister,
      snapshots,
      rounds,
      answers,
      keeper,
      versions,
      signingKeys,
      proposals,
      leadership,
      transfers,
      gateway,
      logger,
      onRemoved,
    });
  }

  private gatewayHost(): GatewayHost {
    const host = this;
    return {
      get machine() {
        return host.applier.machine;
      },
      get isLeader() {
        return host.leadership.isLeader;
      },
      get isServing() {
        return host.leadership.isServing;
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
      get isOverloaded() {
        return host.leadership.isLeader && host.applyLag.isTooLong(host.raft.lastIndex - host.applier.lastApplied);
      },
      clusterId: host.options.clusterId,
      status: () => host.status(),
      proposeClients: (command, payload, reserved, onRefused) =>
        host.proposals.proposeClients(command, payload, reserved, onRefused),
      proposeForced: (command, onRefused) => host.proposals.proposeForced(command, onRefused),
      proposeOwn: (command, onRefused) => host.proposals.proposeOwn(command, onRefused),
      gate: (kind, what) => host.versions.gate(kind, undefined, what),
      signingKeys: host.signingKeys,
      get isBeginning() {
        return host.versions.isBeginning;
      },
      raisableTo: () => host.versions.target(),
      gather: (onReady, onFailed) => host.answers.gather(onReady, onFailed),
      gatherForLease: (onReady, onFailed) => host.answers.gatherForLease(onReady, onFailed),
      keepalive: (session, number) => host.keeper.onKeepalive(session, number, host.loop.nowMs),
      members: () => host.membership.view(),
      changeMembers: (change, isForced, onEnded) => host.changeMembers(change, isForced, onEnded),
      transfer: (to, onEnded) => host.beginTransfer(to, 2 * host.options.raft.electionTimeoutMsMin, onEnded),
      enqueue: (connection, frame) => host.enqueueFrame(connection, frame),
    };
  }
}
