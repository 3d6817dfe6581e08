/** One socket to one node: greeting, frames in and out, and the watch for silence. It never reconnects; leader-finder.ts does. */
import { decodeServerFrame, encodeClientFrames, limits } from "@holdfast/wire";
import type { ClientMessage, NodeAddress, Refusal, ServerMessage } from "@holdfast/wire";
import type { Clock, Socket, SocketEvents, Timer, Transport } from "./ports.js";

/** From dialling to the node's welcome. */
const welcomeMsMax = 2_000;
/** While somebody waits for an answer the node is pinged this often, to notice within a second that it is stuck. */
const urgentPingMs = 400;
/** A timer later than this says that this process was stuck. */
const stallMs = 100;
/** Of the question that stands for a ping; those of callers begin at 1. */
const pingId = 0;
/** What this client can hear beside answers: that the members have changed. */
const features: readonly string[] = ["nodes", "refusedRuns"];

export interface ConnectionOptions {
  readonly endpoint: string;
  readonly info: string;
  /** The cluster this client belongs to; null before its first welcome. A node of another one refuses. */
  readonly clusterId: string | null;
  readonly seenIndex: number;
  /** An idle connection is pinged this often, and given up after two periods of silence. */
  readonly pingMs: number;
  /** Whether somebody waits for an answer now. */
  readonly isUrgent: () => boolean;
}

export interface ConnectionParts {
  readonly clock: Clock;
  readonly transport: Transport;
}

export interface ConnectionEvents {
  /** The node has greeted, or says that leadership changed: `claim` is new. */
  onClaim(connection: Connection): void;
  /** `welcome.nodes` is new: the cluster's members are others now. */
  onNodes(connection: Connection): void;
  /** Every message but welcome, leader and nodes. */
  onMessage(connection: Connection, message: ServerMessage): void;
  /** A ping went unanswered. */
  onSilent(connection: Connection): void;
  /** Once, unless close() was called. `refusal`: the node's own word, if it gave one. */
  onClosed(connection: Connection, problem: string, refusal: Refusal | null): void;
}

export interface Welcome {
  readonly node: string;
  readonly clusterId: string;
  readonly nodes: readonly NodeAddress[];
  readonly features: readonly string[];
}

export class Connection {
  readonly endpoint: string;
  /** Null before the node has greeted. */
  welcome: Welcome | null = null;
  /** Whom the node believes to lead. */
  claim: NodeAddress | null = null;
  private readonly options: ConnectionOptions;
  private readonly clock: Clock;
  private readonly events: ConnectionEvents;
  private readonly socket: Socket;
  private isClosed = false;
  private outbox: ClientMessage[] = [];
  private isFlushDue = false;
  private refusal: Refusal | null = null;
  private timer: Timer | null = null;
  private watchDueMs = 0;
  private lastHeardMs = 0;
  private lastPingMs = 0;
  private isPingOut = false;

  constructor(options: ConnectionOptions, parts: ConnectionParts, events: ConnectionEvents) {
    this.endpoint = options.endpoint;
    this.options = options;
    this.clock = parts.clock;
    this.events = events;
    const socketEvents: SocketEvents = {
      onOpened: () => this.onOpened(),
      onFrame: (frame) => this.onFrame(frame),
      onPong: () => this.onHeard(),
      onClosed: (problem) => this.onClosed(problem),
    };
    this.timer = this.clock.setTimer(welcomeMsMax, () => this.fail(`no welcome within ${welcomeMsMax} ms`));
    this.socket = parts.transport.open(options.endpoint, socketEvents);
  }

  get claimsLeadership(): boolean {
    return this.claim !== null && this.claim.id === this.welcome?.node;
  }

  /** The node has refused as one that doesn't lead. */
  dropClaim(leader: NodeAddress | null): void {
    this.claim = leader?.id === this.welcome?.node ? null : leader;
  }

  /** Everything sent in one tick leaves in one frame. After the end it is dropped: who needs an answer asks again elsewhere. */
  send(message: ClientMessage): void {
    if (this.isClosed) return;
    this.outbox.push(message);
    if (this.isFlushDue) return;
    this.isFlushDue = true;
    this.clock.defer(() => this.flush());
  }

  /** Sends what is queued, then closes in good order. No event comes after it. */
  close(): void {
    if (this.isClosed) return;
    this.flush();
    this.end();
    this.socket.close();
  }

  /** This client can't work with the node: as if the node had said so. */
  reject(problem: string): void {
    this.refusal = { code: "incompatible", problem: `the node at ${this.endpoint} ${problem}` };
    this.fail(problem);
  }

  private flush(): void {
    this.isFlushDue = false;
    if (this.isClosed || this.outbox.length === 0) return;
    const messages = this.outbox;
    this.outbox = [];
    for (const frame of encodeClientFrames(messages)) this.socket.send(frame);
  }

  private onOpened(): void {
    if (this.isClosed) return;
    const { clusterId, seenIndex, info } = this.options;
    this.send({ kind: "hello", protocol: limits.protocolVersion, features, clusterId, seenIndex, info });
  }

  private onFrame(frame: Uint8Array): void {
    if (this.isClosed) return;
    this.onHeard();
    let messages: readonly ServerMessage[];
    try {
      messages = decodeServerFrame(frame);
    } catch (error) {
      this.fail(`sent a frame that can't be read: ${error instanceof Error ? error.message : "unknown error"}`);
      return;
    }
    for (const message of messages) {
      if (this.isClosed) return;
      this.onMessage(message);
    }
  }

  private onMessage(message: ServerMessage): void {
    if (message.kind === "welcome") {
      this.onWelcome(message);
      return;
    }
    if (message.kind === "refused" && this.welcome === null) {
      this.refusal = message.refusal;
      this.fail(`refused this client: ${message.refusal.code}`);
      return;
    }
    if (this.welcome === null) {
      this.fail(`said ${message.kind} before its welcome`);
      return;
    }
    // Heard is all that it is: it doesn't prove, as another answer does, that the node leads.
    if ((message.kind === "answer" || message.kind === "refused") && message.id === pingId) return;
    if (message.kind === "leader") {
      this.claim = message.leader;
      this.events.onClaim(this);
      return;
    }
    if (message.kind === "nodes") {
      this.welcome = { ...this.welcome, nodes: message.nodes };
      this.events.onNodes(this);
      return;
    }
    this.events.onMessage(this, message);
  }

  private onWelcome(message: Extract<ServerMessage, { kind: "welcome" }>): void {
    if (message.protocol !== limits.protocolVersion) {
      this.reject(`speaks protocol ${message.protocol}, this client ${limits.protocolVersion}`);
      return;
    }
    this.welcome = message;
    this.claim = message.leader;
    this.lastPingMs = this.clock.monotonicMs();
    this.watch();
    this.events.onClaim(this);
  }

  private onHeard(): void {
    this.isPingOut = false;
    this.lastHeardMs = this.clock.monotonicMs();
  }

  /** Half-open links raise no event: only a ping that stays unanswered tells. */
  private watch(): void {
    this.timer?.cancel();
    const delayMs = Math.min(urgentPingMs, this.options.pingMs);
    this.watchDueMs = this.clock.monotonicMs() + delayMs;
    this.timer = this.clock.setTimer(delayMs, () => this.onWatchTimer());
  }

  private onWatchTimer(): void {
    if (this.isClosed) return;
    const { pingMs, isUrgent } = this.options;
    const now = this.clock.monotonicMs();
    // A late timer means that this process was stuck; what the node said meanwhile is not read yet.
    if (now - this.watchDueMs > stallMs) this.lastHeardMs = now;
    if (this.isPingOut && now - this.lastHeardMs >= 2 * pingMs) {
      this.fail(`silent for ${Math.round(now - this.lastHeardMs)} ms`);
      return;
    }
    const isUrgentNow = isUrgent();
    this.watch();
    if (this.isPingOut && isUrgentNow) this.events.onSilent(this);
    if (this.isClosed || (!isUrgentNow && now - Math.max(this.lastPingMs, this.lastHeardMs) < pingMs)) return;
    this.isPingOut = true;
    this.lastPingMs = now;
    this.ping();
  }

  /** Any node answers for its own status, at once. */
  private ping(): void {
    if (this.socket.hasPings !== false) this.socket.ping();
    else this.send({ kind: "query", id: pingId, query: { kind: "status" } });
  }

  private onClosed(problem: string): void {
    if (this.isClosed) return;
    this.end();
    this.events.onClosed(this, problem, this.refusal);
  }

  private fail(problem: string): void {
    if (this.isClosed) return;
    this.end();
    this.socket.terminate();
    this.events.onClosed(this, problem, this.refusal);
  }

  private end(): void {
    this.isClosed = true;
    this.outbox = [];
    this.timer?.cancel();
    this.timer = null;
  }
}
