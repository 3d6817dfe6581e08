/**
 * Three nodes that answer as the server does, around one real lock machine: what is committed is applied at once, on all of them. Tests
 * choose who leads, what is lost on the way, and when the quorum answers.
 */
import { LockMachine } from "@holdfast/lock";
import type { Command, Effect, SessionId } from "@holdfast/lock";
import { checkClientCommand, decodeCommand, encodeServerFrame, limits } from "@holdfast/wire";
import type { ClientMessage, NodeAddress, Refusal, ServerMessage } from "@holdfast/wire";
import type { Clock, Timer } from "../../src/ports.js";
import { FakeNode } from "./fake-node.js";
import { answerQuestion } from "./fake-questions.js";
import { FakeWatches } from "./fake-watches.js";
import type { ServerSocket } from "./virtual-network.js";

type SessionCommand = Extract<Command, { readonly session: SessionId; readonly request: number }>;

interface Lease {
  readonly ttlMs: number;
  timer: Timer;
}

export class FakeCluster {
  readonly machine = new LockMachine();
  readonly nodes: readonly FakeNode[];
  /** Every message that arrived, with the node it came to, and when. */
  readonly received: { readonly node: string; readonly atMs: number; readonly message: ClientMessage }[] = [];
  /** Every command of a session that was applied, in the order of the log. */
  readonly applied: { readonly index: number; readonly command: Command }[] = [];
  /** Session, and when the cluster ended it. */
  readonly expired: { readonly session: SessionId; readonly atMs: number }[] = [];
  readonly watches: FakeWatches = new FakeWatches(this);
  /** Of the nodes' welcome. */
  features: readonly string[] = ["nodes", "watch", "sequencers"];
  clusterId = "c1";
  /** Ids that the nodes name as members; null: all nodes. */
  memberIds: readonly string[] | null = null;
  /** Decides about a message before the node does: true to drop it. */
  dropRequest: (message: ClientMessage, node: FakeNode) => boolean = () => false;
  /** The same for what a node says. */
  dropAnswer: (message: ServerMessage, node: FakeNode) => boolean = () => false;
  /** Puts other words into a node's mouth. */
  editAnswer: (message: ServerMessage) => ServerMessage = (message) => message;
  /** Refuses what it returns a refusal for. */
  /** As a node does that refuses many at once. */
  refusesInRuns = false;
  refuseCommand: (command: Command, node: FakeNode) => Refusal | null = () => null;
  /** Refuses a change of members. */
  refuseChange: () => Refusal | null = () => null;
  /** Without it nothing is committed, and no keepalive, resume or query answered. */
  hasQuorum = true;
  /** Acknowledges keepalives of a session that is being resumed before it says what it holds. */
  acknowledgesEarly = false;
  /** How long a quorum round, or a commit, takes. */
  roundMs = 1;
  /** Ends sessions at TTL + 1 % of silence, as the lease-keeper does. */
  expires = false;
  private readonly clock: Clock;
  private index = 100;
  private leaderId: string | null = null;
  private epoch = 0;
  private readonly owners = new Map<SessionId, ServerSocket>();
  private readonly resuming = new Map<ServerSocket, Map<SessionId, ClientMessage[]>>();
  private readonly opening = new Map<string, ServerSocket>();
  private readonly leases = new Map<SessionId, Lease>();
  private readonly waitingForQuorum: (() => void)[] = [];

  constructor(clock: Clock, endpoints: readonly string[]) {
    this.clock = clock;
    this.nodes = endpoints.map((endpoint, at) => new FakeNode(`n${at + 1}`, endpoint, this));
    this.elect("n1");
  }

  get members(): NodeAddress[] {
    const named = this.nodes.filter(({ id }) => this.memberIds?.includes(id) ?? true);
    return named.map(({ id, endpoint }) => ({ id, client: endpoint }));
  }

  /** The members are these now: all nodes tell it to whoever is connected. */
  changeMembers(ids: readonly string[]): void {
    this.memberIds = ids;
    for (const node of this.nodes)
      for (const socket of node.greeted) this.say(node, socket, { kind: "nodes", nodes: this.members });
  }

  get endpoints(): readonly string[] {
    return this.nodes.map((node) => node.endpoint);
  }

  get leader(): string | null {
    return this.leaderId;
  }

  get lastIndex(): number {
    return this.index;
  }

  get term(): number {
    return this.epoch;
  }

  node(id: string): FakeNode {
    const found = this.nodes.find((node) => node.id === id);
    if (found === undefined) throw new Error(`no node ${id}`);
    return found;
  }

  /** Another leader, or none. Nodes in `deaf` don't learn of it. */
  elect(id: string | null, deaf: readonly string[] = []): void {
    this.leaderId = id;
    this.epoch += 1;
    for (const table of [this.owners, this.resuming, this.opening]) table.clear();
    this.watches.onLeadershipLost();
    this.waitingForQuorum.length = 0;
    if (this.expires) for (const session of this.leases.keys()) this.renew(session);
    for (const node of this.nodes) {
      if (deaf.includes(node.id) || node.reach !== "up") continue;
      node.leader = id;
      for (const socket of node.greeted) this.say(node, socket, { kind: "leader", leader: this.addressOf(id) });
    }
  }

  /** The process is gone: its sockets close, and its port refuses. */
  kill(id: string): void {
    const node = this.node(id);
    node.reach = "down";
    for (const socket of node.greeted) {
      socket.close("closed with code 1006");
      this.forget(socket);
    }
    node.greeted.clear();
    if (this.leaderId === id) this.leaderId = null;
  }

  restart(id: string): void {
    const node = this.node(id);
    node.reach = "up";
    node.leader = this.leaderId;
  }

  /** Closes the sockets only. */
  cutConnections(id: string): void {
    const node = this.node(id);
    for (const socket of node.greeted) {
      socket.close("closed with code 1006");
      this.forget(socket);
    }
    node.greeted.clear();
  }

  restoreQuorum(): void {
    this.hasQuorum = true;
    for (const run of this.waitingForQuorum.splice(0)) run();
  }

  /** As if some other client, or an administrator, had done it. */
  apply(command: Command): readonly Effect[] {
    this.index += 1;
    this.applied.push({ index: this.index, command });
    const effects = this.machine.apply(this.index, command);
    // It walks everything: not after each of thousands.
    if (this.machine.lockCount < 30 || this.index % 100 === 0) this.machine.checkInvariants();
    for (const effect of effects) this.onEffect(this.index, effect);
    this.watches.onEffects(this.index, effects);
    return effects;
  }

  /** A session of a stranger. Returns its id. */
  openStranger(key = "f".repeat(32)): SessionId {
    const [opened] = this.apply({ kind: "openSession", key, ttlMs: 60_000, info: "stranger" });
    if (opened?.kind !== "sessionOpened") throw new Error("a session opens");
    return opened.session;
  }

  forget(socket: ServerSocket): void {
    this.watches.forget(socket);
    this.resuming.delete(socket);
    for (const [session, owner] of this.owners) if (owner === socket) this.owners.delete(session);
    for (const [key, owner] of this.opening) if (owner === socket) this.opening.delete(key);
  }

  handle(node: FakeNode, socket: ServerSocket, message: ClientMessage): void {
    this.received.push({ node: node.id, atMs: this.clock.monotonicMs(), message });
    if (!this.dropRequest(message, node)) this.process(node, socket, message);
  }

  private process(node: FakeNode, socket: ServerSocket, message: ClientMessage): void {
    switch (message.kind) {
      case "hello":
        return this.onHello(node, socket, message);
      case "command":
        return this.onCommand(node, socket, message);
      case "resume":
        return this.onResume(node, socket, message.session, message.key);
      case "keepalive":
        return this.onKeepalive(node, socket, message);
      case "query":
      case "forceRelease":
      case "transfer":
      case "finalize":
      case "rotateKey":
      case "changeMembers":
        return answerQuestion(this, node, socket, message);
      case "watch":
      case "unwatch":
        return this.watches.on(node, socket, message);
    }
  }

  private onHello(node: FakeNode, socket: ServerSocket, hello: Extract<ClientMessage, { kind: "hello" }>): void {
    if (hello.clusterId !== null && hello.clusterId !== this.clusterId) {
      this.refuse(node, socket, {}, { code: "incompatible", problem: "another cluster" });
      socket.close("closed with code 4000");
      return;
    }
    node.greeted.add(socket);
    const { clusterId, members: nodes } = this;
    this.say(node, socket, {
      kind: "welcome",
      protocol: limits.protocolVersion,
      features: this.features,
      node: node.id,
      clusterId,
      leader: this.addressOf(node.leader),
      nodes,
    });
  }

  private onCommand(node: FakeNode, socket: ServerSocket, message: Extract<ClientMessage, { kind: "command" }>): void {
    const command = decodeCommand(message.payload);
    const invalid = checkClientCommand(command);
    if (invalid !== null) throw new Error(`the client sent an invalid command: ${JSON.stringify(invalid)}`);
    const refusal = this.leaderId === node.id ? this.refuseCommand(command, node) : this.notLeader(node);
    if (command.kind === "openSession") {
      if (refusal !== null) return this.refuse(node, socket, { key: command.key }, refusal);
      this.opening.set(command.key, socket);
      return this.commit(() => this.apply(command));
    }
    if (!isSessionCommand(command)) throw new Error("the client sent a command of the leader's");
    const { session, request } = command;
    if (refusal !== null) return this.refuse(node, socket, { session, request }, refusal);
    const kept = this.resuming.get(socket)?.get(session);
    if (kept !== undefined) {
      kept.push(message);
      return;
    }
    if (this.owners.get(session) !== socket) {
      const problem = "this connection has not resumed that session";
      return this.refuse(
        node,
        socket,
        { session, request },
        { code: "invalid_argument", argument: "session", problem },
      );
    }
    this.commit(() => this.apply(command));
  }

  private onResume(node: FakeNode, socket: ServerSocket, session: SessionId, key: string): void {
    if (this.leaderId !== node.id) return this.refuse(node, socket, { session }, this.notLeader(node));
    const sessions = this.resuming.get(socket) ?? new Map<SessionId, ClientMessage[]>();
    sessions.set(session, []);
    this.resuming.set(socket, sessions);
    this.commit(() => {
      const kept = this.resuming.get(socket)?.get(session);
      if (kept === undefined) return;
      this.resuming.get(socket)?.delete(session);
      const view = this.machine.resumeView(session, key);
      if (view === null) {
        const reason = this.machine.endReason(session);
        this.refuse(node, socket, { session }, { code: "session_gone", reason });
        return;
      }
      const former = this.owners.get(session);
      this.owners.set(session, socket);
      if (former !== undefined && former !== socket) this.say(node, former, { kind: "superseded", session });
      this.say(node, socket, { kind: "resumed", ...view });
      for (const message of kept) this.process(node, socket, message);
    });
  }

  private onKeepalive(
    node: FakeNode,
    socket: ServerSocket,
    message: Extract<ClientMessage, { kind: "keepalive" }>,
  ): void {
    const { session, number } = message;
    if (this.leaderId !== node.id) return this.refuse(node, socket, { session }, this.notLeader(node));
    const kept = this.resuming.get(socket)?.get(session);
    if (kept !== undefined) {
      if (this.acknowledgesEarly) this.say(node, socket, { kind: "acknowledged", session, number });
      else kept.push(message);
      return;
    }
    this.commit(() => {
      if (this.machine.sessionView(session) === null) {
        const reason = this.machine.endReason(session);
        this.refuse(node, socket, { session }, { code: "session_gone", reason });
        return;
      }
      this.renew(session);
      this.say(node, socket, { kind: "acknowledged", session, number });
    });
  }

  /** After a round, if there is a quorum then, and unless leadership has changed. */
  commit(run: () => void): void {
    const { epoch } = this;
    this.clock.setTimer(this.roundMs, () => {
      const isStill = (): boolean => this.epoch === epoch && this.leaderId !== null;
      if (!isStill()) return;
      if (this.hasQuorum) run();
      else this.waitingForQuorum.push(() => isStill() && run());
    });
  }

  private onEffect(index: number, effect: Effect): void {
    const node = this.leaderId === null ? null : this.node(this.leaderId);
    switch (effect.kind) {
      case "sessionOpened": {
        const { key, session, ttlMs } = effect;
        if (!this.leases.has(session)) this.renew(session, ttlMs);
        const socket = this.opening.get(key);
        if (socket === undefined || node === null) return;
        this.opening.delete(key);
        this.owners.set(session, socket);
        this.say(node, socket, { kind: "sessionOpened", key, session, ttlMs });
        return;
      }
      case "outcome":
        this.push(node, effect.session, { ...effect, index });
        return;
      case "rejected":
        this.push(node, effect.session, effect);
        return;
      case "sessionEnded":
        this.leases.get(effect.session)?.timer.cancel();
        this.leases.delete(effect.session);
        this.push(node, effect.session, effect);
        this.owners.delete(effect.session);
        return;
      default:
    }
  }

  private push(node: FakeNode | null, session: SessionId, message: ServerMessage): void {
    const owner = this.owners.get(session);
    if (owner !== undefined && node !== null) this.say(node, owner, message);
  }

  /** Says something to whoever owns the message's session. */
  tell(message: ServerMessage & { readonly session: SessionId }): void {
    this.push(this.leaderId === null ? null : this.node(this.leaderId), message.session, message);
  }

  /** A node sends bytes that mean nothing. */
  garble(id: string): void {
    for (const socket of this.node(id).greeted) socket.send(new Uint8Array([0xc1, 0xff, 0x00]));
  }

  /** Some other connection resumes the session: its owner is told. */
  usurp(session: SessionId): void {
    this.tell({ kind: "superseded", session });
    this.owners.delete(session);
  }

  private renew(session: SessionId, ttl?: number): void {
    const ttlMs = ttl ?? this.leases.get(session)?.ttlMs ?? 0;
    this.leases.get(session)?.timer.cancel();
    const timer = this.clock.setTimer(ttlMs * 1.01, () => {
      if (!this.expires || this.leaderId === null) return;
      this.expired.push({ session, atMs: this.clock.monotonicMs() });
      this.expire(session);
    });
    this.leases.set(session, { ttlMs, timer });
  }

  /** Ends it in the log, whoever may still renew it. */
  expire(session: SessionId): void {
    this.apply({ kind: "suspectSessions", ids: [session], eighths: 8 });
    this.apply({ kind: "expireSessions", ids: [session] });
  }

  say(node: FakeNode, socket: ServerSocket, message: ServerMessage): void {
    if (!this.dropAnswer(message, node)) socket.send(encodeServerFrame([this.editAnswer(message)]));
  }

  refuse(
    node: FakeNode,
    socket: ServerSocket,
    what: { session?: SessionId; request?: number; id?: number; key?: string },
    refusal: Refusal,
  ): void {
    const { session = null, request = null, id = null, key = null } = what;
    if (this.refusesInRuns && session !== null && request !== null) {
      this.say(node, socket, { kind: "refusedRun", session, from: request, to: request, refusal });
      return;
    }
    this.say(node, socket, { kind: "refused", session, request, id, key, refusal });
  }

  notLeader(node: FakeNode): Refusal {
    return { code: "not_leader", leader: this.addressOf(node.leader === node.id ? null : node.leader) };
  }

  addressOf(id: string | null): NodeAddress | null {
    return id === null ? null : { id, client: this.node(id).endpoint };
  }
}

function isSessionCommand(command: Command): command is SessionCommand {
  return "session" in command && "request" in command;
}
