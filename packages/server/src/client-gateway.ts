/**
 * Where requests of clients come in and answers go out. Decodes and validates each command once; proposes it; and sends what the lock
 * machine says of it to the connection that owns the session.
 */
import type { Effect, SessionId } from "@holdfast/lock";
import { limits } from "@holdfast/wire";
import type { ClientMessage, Query, ServerMessage } from "@holdfast/wire";
import type { GatewayHost, GatewayOptions } from "./gateway-host.js";
import type { ClientShare } from "./client-queue.js";
import type { ClientConnection, ClientEvents, ClientFrame, Logger } from "./ports.js";
import { Intake } from "./intake.js";
import { KeyRequests } from "./key-requests.js";
import { OpenQueries } from "./open-queries.js";
import { QueryRequests } from "./query-requests.js";
import { RefusedAcquires } from "./refused-acquires.js";
import { refuseFrame } from "./refusing.js";
import { SessionRequests } from "./session-requests.js";
import { Watches } from "./watches.js";

interface Greeting {
  /** It has said hello, and was welcomed. */
  greeted: boolean;
  /** It wants to hear when the members change. */
  hearsOfNodes: boolean;
  /** It takes many refusals in one message. */
  takesRuns: boolean;
  /** What it has said while its welcome waits for a quorum round. */
  held: ClientMessage[] | null;
}

/** Of a client's hello. */
const nodesFeature = "nodes";
/** Likewise. */
const runsFeature = "refusedRuns";
/** Of a node's welcome: it takes watches. */
const watchFeature = "watch";
/** Of a node's welcome: it signs sequencers, when the cluster's version allows it. */
const sequencersFeature = "sequencers";

export class ClientGateway implements ClientEvents {
  /** How much is read from whom. */
  readonly intake: Intake = new Intake();
  private readonly connections = new Map<ClientConnection, Greeting>();
  private readonly sessions: SessionRequests;
  private readonly open: OpenQueries;
  private readonly queries: QueryRequests;
  private readonly keys: KeyRequests;
  private readonly watches: Watches;
  private readonly options: GatewayOptions;
  private readonly host: GatewayHost;
  private readonly logger: Logger;

  constructor(options: GatewayOptions, host: GatewayHost, logger: Logger) {
    this.options = options;
    this.host = host;
    this.logger = logger;
    this.sessions = new SessionRequests(options, host, logger);
    this.open = new OpenQueries(host);
    this.queries = new QueryRequests(host, this.open, logger);
    this.keys = new KeyRequests(host, this.open, logger);
    this.watches = new Watches(host);
  }

  get connectionCount(): number {
    return this.connections.size;
  }

  onOpened(connection: ClientConnection): void {
    this.intake.onOpened(connection);
    this.connections.set(connection, { greeted: false, hearsOfNodes: false, takesRuns: false, held: null });
  }

  onFrame(connection: ClientConnection, frame: ClientFrame): void {
    this.intake.onRead(connection, frame.bytes);
    this.host.enqueue(connection, frame);
  }

  /** In the host's turn. */
  handle({ connection, messages, bytes }: ClientShare): void {
    const state = this.connections.get(connection);
    if (state === undefined) return;
    this.intake.onTaken(connection, bytes);
    if (state.greeted && this.host.isOverloaded) this.refuseAcquires(connection, state, messages);
    else for (const message of messages) this.handleOne(connection, state, message);
  }

  onClosed(connection: ClientConnection): void {
    this.connections.delete(connection);
    this.intake.onClosed(connection);
    this.sessions.onClosed(connection);
    this.keys.onClosed(connection);
    this.open.onClosed(connection);
    this.watches.onClosed(connection);
  }

  private refuseAcquires(connection: ClientConnection, state: Greeting, messages: readonly ClientMessage[]): void {
    const refused = new RefusedAcquires(connection, state.takesRuns);
    for (const message of messages) if (!refused.take(message)) this.handleOne(connection, state, message);
    refused.end();
  }

  private handleOne(connection: ClientConnection, state: Greeting, message: ClientMessage): void {
    if (state.held !== null && state.held.length < limits.messagesPerFrameMax) {
      state.held.push(message);
      return;
    }
    if (!state.greeted && message.kind !== "hello") {
      refuseFrame(connection, { code: "invalid_argument", argument: "frame", problem: "hello comes first" });
      return;
    }
    switch (message.kind) {
      case "hello":
        this.onHello(connection, state, message);
        return;
      case "command":
        this.sessions.onCommand(connection, message.payload, message.traceparent);
        return;
      case "resume":
        this.sessions.onResume(connection, message.session, message.key);
        return;
      case "keepalive":
        this.sessions.onKeepalive(connection, message.session, message.number);
        return;
      case "query":
        this.onQuery(connection, message.id, message.query);
        return;
      case "rotateKey":
        this.keys.onRotate(connection, message.id, message.principal);
        return;
      case "forceRelease":
        this.queries.onForceRelease(connection, message);
        return;
      case "transfer":
        this.queries.onTransfer(connection, message.id, message.to);
        return;
      case "finalize":
        this.queries.onFinalize(connection, message.id);
        return;
      case "changeMembers":
        this.queries.onChangeMembers(connection, message);
        return;
      case "watch":
        this.watches.onWatch(connection, message);
        return;
      case "unwatch":
        this.watches.onUnwatch(connection, message.id);
        return;
      default:
        assertNever(message);
    }
  }

  private onQuery(connection: ClientConnection, id: number, query: Query): void {
    switch (query.kind) {
      case "sequencer":
      case "check":
      case "keys":
        this.keys.onQuery(connection, id, query);
        return;
      default:
        this.queries.onQuery(connection, id, query);
    }
  }

  /** Of every applied entry, whoever leads. */
  onApplied(index: number, effects: readonly Effect[]): void {
    this.watches.onEffects(index, effects);
  }

  /** A snapshot has taken the place of all entries up to `index`. */
  onInstalled(index: number): void {
    this.watches.onInstalled(index);
  }

  /** What entries that this leader has applied say to the clients connected here. */
  onEffects(index: number, effects: readonly Effect[]): void {
    for (const effect of effects) {
      if (effect.kind === "forced") this.queries.onForced(effect);
      else if (effect.kind === "clusterVersion") this.queries.onClusterVersion(effect.version);
      else if (effect.kind === "signingKeySet") this.keys.onKeySet(effect);
      else this.sessions.onEffect(index, effect);
    }
  }

  acknowledge(session: SessionId, number: number): void {
    this.sessions.acknowledge(session, number);
  }

  /** This node's own no-op is applied. */
  onServing(): void {
    this.sessions.onServing();
  }

  /** In each turn of a leader that serves. */
  releaseEarly(): void {
    this.sessions.releaseEarly();
  }

  /** The leader is another one now, or unknown. */
  onLeaderChanged(wasLeader: boolean): void {
    const message: ServerMessage = { kind: "leader", leader: this.host.leader };
    for (const [connection, state] of this.connections) if (state.greeted) connection.send(message);
    if (!wasLeader) return;
    this.sessions.onLeadershipLost();
    this.queries.onLeadershipLost();
    this.keys.onLeadershipLost();
    this.watches.onLeadershipLost();
  }

  /** The members are others now. */
  onNodes(): void {
    const message: ServerMessage = { kind: "nodes", nodes: this.host.nodes };
    for (const [connection, state] of this.connections)
      if (state.greeted && state.hearsOfNodes) connection.send(message);
  }

  /**
   * A client has seen more than this leader has applied: either history was lost, or this node leads no more and doesn't know it yet.
   * Only a quorum round tells; until then the client waits for its welcome.
   */
  private checkHistory(connection: ClientConnection, state: Greeting, seenIndex: number): void {
    const { host } = this;
    const held: ClientMessage[] = [];
    state.held = held;
    const greet = (): void => {
      state.held = null;
      if (!this.connections.has(connection)) return;
      this.greet(connection, state);
      for (const message of held) this.handleOne(connection, state, message);
    };
    host.gather(() => {
      const index = host.lastApplied;
      if (seenIndex <= index) return greet();
      const problem = `history regressed: the client has seen index ${seenIndex}, the leader is at ${index}`;
      this.logger.error({ remote: connection.remote, seenIndex, index }, problem);
      refuseFrame(connection, { code: "incompatible", problem });
    }, greet);
  }

  private greet(connection: ClientConnection, state: Greeting): void {
    const { host } = this;
    state.greeted = true;
    connection.send({
      kind: "welcome",
      protocol: limits.protocolVersion,
      features: [nodesFeature, watchFeature, sequencersFeature],
      node: this.options.nodeId,
      clusterId: host.clusterId,
      leader: host.leader,
      nodes: host.nodes,
    });
  }

  private onHello(
    connection: ClientConnection,
    state: Greeting,
    hello: Extract<ClientMessage, { kind: "hello" }>,
  ): void {
    const { host } = this;
    if (hello.protocol !== limits.protocolVersion) {
      const problem = `this node speaks protocol ${limits.protocolVersion}, the client ${hello.protocol}`;
      refuseFrame(connection, { code: "incompatible", problem });
      return;
    }
    if (hello.clusterId !== null && hello.clusterId !== host.clusterId) {
      const problem = `this node belongs to cluster ${host.clusterId}, the client to ${hello.clusterId}`;
      refuseFrame(connection, { code: "incompatible", problem });
      return;
    }
    state.hearsOfNodes = hello.features.includes(nodesFeature);
    state.takesRuns = hello.features.includes(runsFeature);
    if (host.isServing && hello.seenIndex > host.lastApplied) this.checkHistory(connection, state, hello.seenIndex);
    else this.greet(connection, state);
  }
}

function assertNever(value: never): never {
  throw new Error(`unexpected value ${JSON.stringify(value)}`);
}
