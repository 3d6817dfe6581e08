/**
 * Where requests of clients come in and answers go out. Decodes and validates each command once; proposes it; and sends what the lock
 * machine says of it to the connection that owns the session. It keeps no state that a new leader would miss: who owns which session
 * is learnt from `resume`.
 */
import type { Command, Effect, LockMachine, SessionId } from "@holdfast/lock";
import { checkClientCommand, decodeCommand, limits, WireError } from "@holdfast/wire";
import type { ClientMessage, NodeAddress, NodeStatus, Query, QueryResult, Refusal, ServerMessage } from "@holdfast/wire";
import type { ClientConnection, ClientEvents, Logger } from "./ports.js";
import { SessionOwners } from "./session-owners.js";

export interface GatewayOptions {
  readonly nodeId: string;
  readonly version: string;
  readonly ttlMsMin: number;
  readonly ttlMsMax: number;
  readonly sessionsMax: number;
}

/** What the gateway asks of the host; all of it within the host's turn. */
export interface GatewayHost {
  readonly machine: LockMachine;
  readonly isLeader: boolean;
  /** Leads, and its own term's no-op is applied: its state is no older than any answer given before. */
  readonly isServing: boolean;
  readonly leader: NodeAddress | null;
  readonly nodes: readonly NodeAddress[];
  readonly clusterId: string;
  readonly lastApplied: number;
  status(): NodeStatus;
  /** `onRefused` runs in the same turn if the entry did not enter the log. */
  proposePayload(payload: Uint8Array, reserved: boolean, onRefused: (refusal: Refusal) => void): void;
  proposeForced(command: Command, onRefused: (refusal: Refusal) => void): void;
  gather(onReady: () => void, onFailed: () => void): void;
  /** False: no lease of that session is kept here. */
  keepalive(session: SessionId, number: number): boolean;
  transfer(to: string | null, onEnded: (leader: NodeAddress | null) => void): void;
  /** Queues messages for the next turn. */
  enqueue(connection: ClientConnection, messages: readonly ClientMessage[]): void;
}

interface ConnectionState {
  greeted: boolean;
  /** Queries, forced releases and transfers that wait for their answers. */
  openQueries: number;
}

type SessionCommand = Extract<Command, { readonly session: SessionId; readonly request: number; readonly settled: number }>;

interface PendingForce {
  readonly connection: ClientConnection;
  readonly id: number;
  readonly name: string;
  readonly token: number;
  readonly principal: string;
}

export class ClientGateway implements ClientEvents {
  private readonly connections = new Map<ClientConnection, ConnectionState>();
  private readonly owners = new SessionOwners();
  /** openSession's that are proposed: which connection asked, by key. */
  private readonly opening = new Map<string, ClientConnection>();
  private readonly forces: PendingForce[] = [];
  private readonly options: GatewayOptions;
  private readonly host: GatewayHost;
  private readonly logger: Logger;

  constructor(options: GatewayOptions, host: GatewayHost, logger: Logger) {
    this.options = options;
    this.host = host;
    this.logger = logger;
  }

  get connectionCount(): number {
    return this.connections.size;
  }

  onOpened(connection: ClientConnection): void {
    this.connections.set(connection, { greeted: false, openQueries: 0 });
  }

  onMessages(connection: ClientConnection, messages: readonly ClientMessage[]): void {
    this.host.enqueue(connection, messages);
  }

  onClosed(connection: ClientConnection): void {
    this.connections.delete(connection);
    this.owners.forgetConnection(connection);
  }

  /** One message, in the host's turn. */
  handle(connection: ClientConnection, message: ClientMessage): void {
    const state = this.connections.get(connection);
    if (state === undefined) return;
    if (!state.greeted && message.kind !== "hello") {
      this.refuseFrame(connection, { code: "invalid_argument", argument: "frame", problem: "hello comes first" });
      return;
    }
    switch (message.kind) {
      case "hello":
        this.onHello(connection, state, message);
        return;
      case "command":
        this.onCommand(connection, message.payload);
        return;
      case "resume":
        this.onResume(connection, message.session, message.key);
        return;
      case "keepalive":
        this.onKeepalive(connection, message.session, message.number);
        return;
      case "query":
        this.onQuery(connection, message.id, message.query);
        return;
      case "forceRelease":
        this.onForceRelease(connection, message);
        return;
      case "transfer":
        this.onTransfer(connection, message.id, message.to);
        return;
      default:
        assertNever(message);
    }
  }

  /** What applied entries say to the clients connected here. On a follower nobody owns a session, and all of it is dropped. */
  onEffects(index: number, effects: readonly Effect[]): void {
    for (const effect of effects) this.onEffect(index, effect);
  }

  /** All keepalives up to `number` have renewed the session. */
  acknowledge(session: SessionId, number: number): void {
    this.owners.send(session, { kind: "acknowledged", session, number });
  }

  /** This node's own no-op is applied: resumes that came before can be answered. */
  onServing(): void {
    for (const { connection, session } of this.owners.resuming()) this.decideResume(connection, session);
  }

  /** The leader is another one now, or unknown. Nothing that was proposed here is lost by it: clients ask again at the new leader. */
  onLeaderChanged(wasLeader: boolean): void {
    const message: ServerMessage = { kind: "leader", leader: this.host.leader };
    for (const [connection, state] of this.connections) if (state.greeted) connection.send(message);
    if (!wasLeader) return;
    this.owners.clear();
    this.opening.clear();
    for (const { connection, id } of this.forces.splice(0)) {
      this.endQuery(connection);
      this.refuseQuery(connection, id, { code: "unknown_outcome" });
    }
  }

  private onHello(
    connection: ClientConnection,
    state: ConnectionState,
    hello: Extract<ClientMessage, { kind: "hello" }>,
  ): void {
    const { host } = this;
    if (hello.protocol !== limits.protocolVersion) {
      const problem = `this node speaks protocol ${limits.protocolVersion}, the client ${hello.protocol}`;
      this.refuseFrame(connection, { code: "incompatible", problem });
      return;
    }
    if (hello.clusterId !== null && hello.clusterId !== host.clusterId) {
      const problem = `this node belongs to cluster ${host.clusterId}, the client to ${hello.clusterId}`;
      this.refuseFrame(connection, { code: "incompatible", problem });
      return;
    }
    if (host.isServing && hello.seenIndex > host.lastApplied) {
      const problem = `history regressed: the client has seen index ${hello.seenIndex}, the leader is at ${host.lastApplied}`;
      this.logger.error({ remote: connection.remote, seenIndex: hello.seenIndex, index: host.lastApplied }, problem);
      this.refuseFrame(connection, { code: "incompatible", problem });
      return;
    }
    state.greeted = true;
    connection.send({
      kind: "welcome",
      protocol: limits.protocolVersion,
      features: [],
      node: this.options.nodeId,
      clusterId: host.clusterId,
      leader: host.leader,
      nodes: host.nodes,
    });
  }

  private onCommand(connection: ClientConnection, payload: Uint8Array): void {
    let command: Command;
    try {
      command = decodeCommand(payload);
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      this.refuseFrame(connection, { code: "invalid_argument", argument: "command", problem: error.code });
      return;
    }
    const invalid = checkClientCommand(command) ?? this.checkTtl(command);
    if (command.kind === "openSession") {
      this.onOpenSession(connection, command.key, payload, invalid);
      return;
    }
    if (!isSessionCommand(command)) {
      this.refuseFrame(connection, { code: "invalid_argument", argument: "command", problem: "not a client's command" });
      return;
    }
    if (invalid !== null) this.refuseCommand(connection, command, invalid);
    else this.onSessionCommand(connection, command, payload);
  }

  private checkTtl(command: Command): Refusal | null {
    if (command.kind !== "openSession") return null;
    const { ttlMsMin, ttlMsMax } = this.options;
    if (command.ttlMs >= ttlMsMin && command.ttlMs <= ttlMsMax) return null;
    const problem = `must be from ${ttlMsMin} to ${ttlMsMax} on this cluster, is ${command.ttlMs}`;
    return { code: "invalid_argument", argument: "ttlMs", problem };
  }

  private onOpenSession(connection: ClientConnection, key: string, payload: Uint8Array, invalid: Refusal | null): void {
    const refuse = (refusal: Refusal): void => {
      this.opening.delete(key);
      connection.send({ kind: "refused", session: null, request: null, id: null, key, refusal });
    };
    if (invalid !== null) refuse(invalid);
    else if (!this.host.isLeader) refuse(this.notLeader());
    else if (this.isFullFor(connection)) refuse({ code: "overloaded" });
    else {
      this.opening.set(key, connection);
      this.host.proposePayload(payload, false, refuse);
    }
  }

  private isFullFor(connection: ClientConnection): boolean {
    if (this.host.machine.sessionCount + this.opening.size >= this.options.sessionsMax) return true;
    return this.owners.countOf(connection) >= limits.sessionsPerConnectionMax;
  }

  private onSessionCommand(connection: ClientConnection, command: SessionCommand, payload: Uint8Array): void {
    if (!this.host.isLeader) {
      this.refuseCommand(connection, command, this.notLeader());
      return;
    }
    const standing = this.owners.standing(command.session, connection);
    if (standing === "other") {
      const problem = "this connection has not resumed that session";
      this.refuseCommand(connection, command, { code: "invalid_argument", argument: "session", problem });
      return;
    }
    if (standing === "resuming") {
      // Its key is not checked yet: keep the command until it is.
      if (!this.owners.keepCommand(command.session, connection, payload)) {
        this.refuseCommand(connection, command, { code: "overloaded" });
      }
      return;
    }
    this.propose(connection, command, payload);
  }

  private propose(connection: ClientConnection, command: SessionCommand, payload: Uint8Array): void {
    // Whatever gives something back must get through when acquires no longer do.
    const reserved = command.kind === "release" || command.kind === "cancel" || command.kind === "closeSession";
    this.host.proposePayload(payload, reserved, (refusal) => this.refuseCommand(connection, command, refusal));
  }

  private onResume(connection: ClientConnection, session: SessionId, key: string): void {
    if (!this.host.isLeader) {
      this.refuseSession(connection, session, this.notLeader());
      return;
    }
    if (this.owners.countOf(connection) >= limits.sessionsPerConnectionMax) {
      this.refuseSession(connection, session, { code: "overloaded" });
      return;
    }
    this.owners.beginResume(session, key, connection);
    if (this.host.isServing) this.decideResume(connection, session);
  }

  /** Own no-op is applied. The answer waits for a quorum round, so that it is no older than anything this client was told before. */
  private decideResume(connection: ClientConnection, session: SessionId): void {
    this.host.gather(
      () => this.finishResume(connection, session),
      () => {
        if (this.owners.endResume(session, connection) !== null) this.refuseSession(connection, session, this.notLeader());
      },
    );
  }

  private finishResume(connection: ClientConnection, session: SessionId): void {
    const resume = this.owners.endResume(session, connection);
    if (resume === null) return;
    const view = this.host.machine.resumeView(session, resume.key);
    if (view === null) {
      this.refuseSession(connection, session, { code: "session_gone", reason: null });
      return;
    }
    const former = this.owners.own(session, connection);
    if (former !== null) former.send({ kind: "superseded", session });
    connection.send({ kind: "resumed", ...view });
    if (resume.keepalive !== null) this.keepalive(connection, session, resume.keepalive);
    for (const payload of resume.payloads) this.onCommand(connection, payload);
  }

  private onKeepalive(connection: ClientConnection, session: SessionId, number: number): void {
    if (!this.host.isLeader) {
      this.refuseSession(connection, session, this.notLeader());
      return;
    }
    const standing = this.owners.standing(session, connection);
    if (standing === "resuming") this.owners.keepKeepalive(session, connection, number);
    else if (standing === "owner") this.keepalive(connection, session, number);
    else {
      const problem = "this connection has not resumed that session";
      this.refuseSession(connection, session, { code: "invalid_argument", argument: "session", problem });
    }
  }

  private keepalive(connection: ClientConnection, session: SessionId, number: number): void {
    if (this.host.keepalive(session, number)) return;
    this.host.gather(
      () => {
        if (this.host.keepalive(session, number)) return;
        this.refuseSession(connection, session, { code: "session_gone", reason: null });
      },
      () => this.refuseSession(connection, session, this.notLeader()),
    );
  }

  private onQuery(connection: ClientConnection, id: number, query: Query): void {
    if (query.kind === "status") {
      connection.send({ kind: "answer", id, result: { kind: "status", status: this.host.status() } });
      return;
    }
    if (!this.admitsQuery(connection, id)) return;
    this.host.gather(
      () => {
        this.endQuery(connection);
        connection.send({ kind: "answer", id, result: this.answerTo(query) });
      },
      () => {
        this.endQuery(connection);
        this.refuseQuery(connection, id, this.notLeader());
      },
    );
  }

  private admitsQuery(connection: ClientConnection, id: number): boolean {
    if (!this.host.isLeader) {
      this.refuseQuery(connection, id, this.notLeader());
      return false;
    }
    const state = this.connections.get(connection);
    if (state === undefined || state.openQueries >= limits.queriesPerConnectionMax) {
      this.refuseQuery(connection, id, { code: "overloaded" });
      return false;
    }
    state.openQueries += 1;
    return true;
  }

  private endQuery(connection: ClientConnection): void {
    const state = this.connections.get(connection);
    if (state !== undefined) state.openQueries -= 1;
  }

  private answerTo(query: Exclude<Query, { kind: "status" }>): QueryResult {
    const { machine, lastApplied: index } = this.host;
    switch (query.kind) {
      case "inspect":
        return { kind: "lock", index, lock: machine.lockView(query.name, limits.waitersShownMax) };
      case "list": {
        const { locks, more } = machine.list(query.prefix, query.after, query.limit);
        return { kind: "locks", index, locks, more };
      }
      case "sessions": {
        const sessions = [];
        for (const session of machine.sessions()) {
          if (sessions.length >= query.limit) break;
          sessions.push(session);
        }
        return { kind: "sessions", index, sessions };
      }
      default:
        return assertNever(query);
    }
  }

  private onForceRelease(connection: ClientConnection, message: Extract<ClientMessage, { kind: "forceRelease" }>): void {
    const { id, name, token, principal, lockDelayMs } = message;
    if (!this.admitsQuery(connection, id)) return;
    const pending: PendingForce = { connection, id, name, token, principal };
    this.forces.push(pending);
    this.logger.warn({ lock: name, token, principal, remote: connection.remote }, "forced release asked for");
    this.host.proposeForced({ kind: "forceRelease", name, token, principal, lockDelayMs }, (refusal) => {
      this.forces.splice(this.forces.indexOf(pending), 1);
      this.endQuery(connection);
      this.refuseQuery(connection, id, refusal);
    });
  }

  private onTransfer(connection: ClientConnection, id: number, to: string | null): void {
    if (to !== null && !this.host.nodes.some((node) => node.id === to)) {
      const problem = `no node of this cluster has the id ${to}`;
      this.refuseQuery(connection, id, { code: "invalid_argument", argument: "to", problem });
      return;
    }
    if (!this.admitsQuery(connection, id)) return;
    this.host.transfer(to, (leader) => {
      this.endQuery(connection);
      connection.send({ kind: "transferred", id, leader });
    });
  }

  private onEffect(index: number, effect: Effect): void {
    switch (effect.kind) {
      case "sessionOpened": {
        const { key, session, ttlMs } = effect;
        const connection = this.opening.get(key);
        if (connection === undefined) return;
        this.opening.delete(key);
        if (!this.connections.has(connection)) return;
        this.owners.own(session, connection);
        connection.send({ kind: "sessionOpened", key, session, ttlMs });
        return;
      }
      case "outcome": {
        const { session, request, outcome } = effect;
        this.owners.send(session, { kind: "outcome", session, request, index, outcome });
        return;
      }
      case "rejected": {
        const { session, request, rejection } = effect;
        this.owners.send(session, { kind: "rejected", session, request, rejection });
        return;
      }
      case "sessionEnded":
        this.owners.send(effect.session, { kind: "sessionEnded", session: effect.session, reason: effect.reason });
        this.owners.forget(effect.session);
        return;
      case "forced":
        this.onForced(effect);
        return;
      case "silence":
      case "expiryRefused":
      case "holdBegan":
      case "lockDelayBegan":
      case "lockDelayEnded":
      case "changed":
        return;
      default:
        assertNever(effect);
    }
  }

  private onForced(effect: Extract<Effect, { kind: "forced" }>): void {
    const { name, token, principal, ended, holders } = effect;
    if (ended > 0) this.logger.warn({ lock: name, token, principal, ended }, "hold ended by force");
    const at = this.forces.findIndex((one) => one.name === name && one.token === token && one.principal === principal);
    const [pending] = at < 0 ? [] : this.forces.splice(at, 1);
    if (pending === undefined) return;
    this.endQuery(pending.connection);
    pending.connection.send({ kind: "forced", id: pending.id, ended, holders: holders.length });
  }

  private notLeader(): Refusal {
    return { code: "not_leader", leader: this.host.leader };
  }

  private refuseCommand(connection: ClientConnection, command: SessionCommand, refusal: Refusal): void {
    const { session, request } = command;
    connection.send({ kind: "refused", session, request, id: null, key: null, refusal });
  }

  private refuseSession(connection: ClientConnection, session: SessionId, refusal: Refusal): void {
    connection.send({ kind: "refused", session, request: null, id: null, key: null, refusal });
  }

  private refuseQuery(connection: ClientConnection, id: number, refusal: Refusal): void {
    connection.send({ kind: "refused", session: null, request: null, id, key: null, refusal });
  }

  /** The connection can't be understood: it hears why, and is closed. */
  private refuseFrame(connection: ClientConnection, refusal: Refusal): void {
    connection.send({ kind: "refused", session: null, request: null, id: null, key: null, refusal });
    connection.close(refusal.code === "incompatible" ? 4000 : 1007, refusal.code);
  }
}

function isSessionCommand(command: Command): command is SessionCommand {
  switch (command.kind) {
    case "closeSession":
    case "acquire":
    case "release":
    case "cancel":
    case "setInfo":
      return true;
    default:
      return false;
  }
}

function assertNever(value: never): never {
  throw new Error(`unexpected value ${JSON.stringify(value)}`);
}
