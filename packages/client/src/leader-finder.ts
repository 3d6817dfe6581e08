/**
 * Keeps one connection to the node that leads. While there is none it asks all known nodes, one every few milliseconds, and stays
 * connected to those that don't lead: they say at once when there is a new leader. A connection that leads no more, or has fallen
 * silent, is kept until its successor is found.
 */
import type { NodeAddress, Refusal, ServerMessage } from "@holdfast/wire";
import { Backoff } from "./backoff.js";
import { Connection } from "./connection.js";
import type { ConnectionEvents } from "./connection.js";
import type { ClientPorts, Logger, Timer } from "./ports.js";

/** While a node's welcome is awaited, the next node is asked after this. */
const staggerMs = 25;
/** So many tries of one node are quick, since a failover takes a few hundred milliseconds; then they are spread over a second. */
const quickTries = 10;
const quickRetryMs = 20;
const slowRetry = { firstMs: 50, maxMs: 1_000 };
/** A node that didn't lead when asked, and has said nothing since, is asked anew after this (and up to as much again). */
const recheckMs = 500;
/** A connection that ends sooner proves nothing: a node that answers and hangs up, each time, isn't asked again at once. */
const shortLifeMs = 1_000;

export interface FinderOptions {
  readonly endpoints: readonly string[];
  readonly info: string;
  readonly pingMs: number;
}

export interface FinderEvents {
  /** A node leads and awaits what we have to say: a new connection, or the same one again. */
  onLeader(connection: Connection): void;
  /** From the leader, or from the one that led last while there is no other. */
  onMessage(message: ServerMessage): void;
  /** A node of the cluster has greeted. */
  onWelcome(): void;
  /** Every known node refuses this client for good. */
  onRefused(refusal: Refusal): void;
  isUrgent(): boolean;
  seenIndex(): number;
}

/** An address that may lead to a node. */
interface Target {
  readonly endpoint: string;
  readonly isConfigured: boolean;
  readonly backoff: Backoff;
  /** Since it last was well. */
  tries: number;
  dialledMs: number;
  /** On this connection, as a leader. */
  hasAnswered: boolean;
  nextDialMs: number;
  connection: Connection | null;
  refusal: Refusal | null;
  problem: string;
}

export class LeaderFinder {
  private readonly options: FinderOptions;
  private readonly ports: ClientPorts;
  private readonly events: FinderEvents;
  private readonly logger: Logger;
  private readonly targets = new Map<string, Target>();
  private readonly connectionEvents: ConnectionEvents;
  private leading: Connection | null = null;
  /** The last one that led, until another leads: its messages still count. */
  private current: Connection | null = null;
  private isSuspect = false;
  private isClosed = false;
  private clusterIdKnown: string | null = null;
  private lastDialMs = Number.NEGATIVE_INFINITY;
  private timer: Timer | null = null;

  constructor(options: FinderOptions, ports: ClientPorts, events: FinderEvents, logger: Logger) {
    this.options = options;
    this.ports = ports;
    this.events = events;
    this.logger = logger;
    this.connectionEvents = {
      onClaim: (connection) => this.onClaim(connection),
      onNodes: (connection) => this.onNodes(connection),
      onMessage: (connection, message) => this.onMessage(connection, message),
      onSilent: (connection) => this.onSilent(connection),
      onClosed: (connection, problem, refusal) => this.onClosed(connection, problem, refusal),
    };
    for (const endpoint of shuffled(options.endpoints, ports)) this.addTarget(endpoint, true);
  }

  get leader(): Connection | null {
    return this.leading;
  }

  get clusterId(): string | null {
    return this.clusterIdKnown;
  }

  /** Whether any node is connected, leading or not. */
  get isConnected(): boolean {
    return this.welcomed().length > 0;
  }

  /** All addresses tried, the configured ones first. */
  get endpoints(): readonly string[] {
    return [...this.targets.values()].filter((target) => target.isConfigured).map((target) => target.endpoint);
  }

  /** Why nothing is reached, for an error's text. */
  get problems(): string {
    return [...this.targets.values()].map(({ endpoint, problem }) => `${endpoint}: ${problem}`).join("; ");
  }

  /** What a node that was reached refuses this client for, if one does. */
  get refusal(): Refusal | null {
    return [...this.targets.values()].find((target) => target.refusal !== null)?.refusal ?? null;
  }

  start(): void {
    this.dial();
  }

  close(): void {
    this.isClosed = true;
    this.timer?.cancel();
    this.leading = null;
    this.current = null;
    for (const target of this.targets.values()) this.closeTarget(target);
  }

  /** A request was refused: that node doesn't lead. */
  onNotLeader(leader: NodeAddress | null): void {
    if (this.leading === null) return;
    this.leading.dropClaim(leader);
    this.loseLeader(leader === null ? "leads no more" : `names ${leader.id} as leader`);
  }

  /** Something that should have been answered was not: look for another leader, and keep this one until it is found. */
  suspect(): void {
    if (this.leading === null || this.isSuspect || this.isClosed) return;
    this.isSuspect = true;
    this.dial();
  }

  /** Another connection has taken over our session: begin anew. */
  drop(problem: string): void {
    const connection = this.current;
    if (connection === null) return;
    connection.close();
    this.onClosed(connection, problem, null);
  }

  private addTarget(endpoint: string, isConfigured: boolean): Target {
    const known = this.targets.get(endpoint);
    if (known !== undefined) return known;
    const backoff = new Backoff(slowRetry, this.ports.random);
    const target: Target = {
      endpoint,
      isConfigured,
      backoff,
      tries: 0,
      dialledMs: 0,
      hasAnswered: false,
      nextDialMs: Number.NEGATIVE_INFINITY,
      connection: null,
      refusal: null,
      problem: "not tried yet",
    };
    this.targets.set(endpoint, target);
    return target;
  }

  private get isSearching(): boolean {
    return !this.isClosed && (this.leading === null || this.isSuspect);
  }

  /** Asks the next node that is due, if it is time, and sees to it that it is called again. */
  private dial(): void {
    this.timer?.cancel();
    this.timer = null;
    if (!this.isSearching) return;
    const all = [...this.targets.values()];
    const isAwaited = ({ connection }: Target): boolean => connection !== null && connection.welcome === null;
    const [first] = all
      .filter((target) => target.connection === null || (!isAwaited(target) && target.connection !== this.leading))
      .sort((a, b) => a.nextDialMs - b.nextDialMs);
    if (first === undefined) return;
    const earliestMs = all.some(isAwaited) ? Math.max(first.nextDialMs, this.lastDialMs + staggerMs) : first.nextDialMs;
    const delayMs = earliestMs - this.ports.clock.monotonicMs();
    if (delayMs <= 0) {
      this.dialTarget(first);
      this.dial();
      return;
    }
    this.timer = this.ports.clock.setTimer(delayMs, () => this.dial());
  }

  private dialTarget(target: Target): void {
    const { info, pingMs } = this.options;
    if (target.connection === this.current) this.current = null;
    this.closeTarget(target);
    this.lastDialMs = this.ports.clock.monotonicMs();
    target.dialledMs = this.lastDialMs;
    target.hasAnswered = false;
    target.tries += 1;
    const options = {
      endpoint: target.endpoint,
      info,
      pingMs,
      clusterId: this.clusterIdKnown,
      seenIndex: this.events.seenIndex(),
      isUrgent: () => this.events.isUrgent(),
    };
    target.connection = new Connection(options, this.ports, this.connectionEvents);
  }

  private onClaim(connection: Connection): void {
    const target = this.targets.get(connection.endpoint);
    const { welcome } = connection;
    if (target === undefined || welcome === null) return;
    if (this.clusterIdKnown !== null && this.clusterIdKnown !== welcome.clusterId) {
      connection.reject(`belongs to cluster ${welcome.clusterId}, not ${this.clusterIdKnown}`);
      return;
    }
    this.clusterIdKnown = welcome.clusterId;
    target.refusal = null;
    target.nextDialMs = this.ports.clock.monotonicMs() + recheckMs * (1 + this.ports.random.fraction());
    this.learn(welcome.nodes);
    this.events.onWelcome();
    if (this.isClosed) return;
    if (connection.claimsLeadership) this.follow(connection);
    else if (connection === this.leading) this.loseLeader("leads no more");
    else this.goTo(connection.claim);
  }

  /** The cluster's own list replaces what it said before; configured endpoints stay. */
  private learn(nodes: readonly NodeAddress[]): void {
    const named = new Set(nodes.map((node) => node.client));
    for (const target of this.targets.values()) {
      if (target.isConfigured || named.has(target.endpoint) || target.connection !== null) continue;
      this.targets.delete(target.endpoint);
    }
    for (const endpoint of named) this.addTarget(endpoint, false);
  }

  /** From the leader alone, while there is one: the others may be behind it. */
  private onNodes(connection: Connection): void {
    if (connection.welcome === null || (this.leading !== null && connection !== this.leading)) return;
    this.logger.info(
      { nodes: connection.welcome.nodes.map(({ client }) => client) },
      "the cluster's nodes have changed",
    );
    this.learn(connection.welcome.nodes);
    this.dial();
  }

  private follow(connection: Connection): void {
    // The one that led last is leading again: it has forgotten whose connection this is, so everything is said anew.
    this.leading = connection;
    this.current = connection;
    this.isSuspect = false;
    this.timer?.cancel();
    this.timer = null;
    for (const target of this.targets.values()) if (target.connection !== connection) this.closeTarget(target);
    this.logger.info({ node: connection.welcome?.node, endpoint: connection.endpoint }, "leader found");
    this.events.onLeader(connection);
  }

  private loseLeader(problem: string): void {
    const { leading } = this;
    if (leading === null) return;
    this.leading = null;
    this.isSuspect = false;
    this.logger.info({ endpoint: leading.endpoint, problem }, "leader lost");
    if (leading.claim !== null) this.goTo(leading.claim);
    this.dial();
  }

  /** A node names the leader. Ask there at once, unless that was tried a moment ago: the word may be older than the leader's death. */
  private goTo(leader: NodeAddress | null): void {
    if (leader !== null && this.isSearching && !this.welcomed().some((one) => one.welcome?.node === leader.id)) {
      const target = this.addTarget(leader.client, false);
      const isDue = target.connection === null && target.nextDialMs <= this.ports.clock.monotonicMs();
      if (isDue) this.dialTarget(target);
    }
    this.dial();
  }

  private onMessage(connection: Connection, message: ServerMessage): void {
    if (connection !== this.current) return;
    if (connection === this.leading && message.kind !== "refused") this.onProof();
    this.events.onMessage(message);
  }

  /** The leader answers as one: whatever failed before is over. */
  private onProof(): void {
    if (this.isSuspect) {
      this.isSuspect = false;
      this.timer?.cancel();
      this.timer = null;
      for (const target of this.targets.values()) if (target.connection !== this.leading) this.closeTarget(target);
    }
    for (const target of this.targets.values()) {
      if (target.connection === this.leading) target.hasAnswered = true;
      else if (target.tries > 0) {
        beWell(target);
        target.nextDialMs = Number.NEGATIVE_INFINITY;
      }
    }
  }

  private onSilent(connection: Connection): void {
    if (connection === this.leading) this.suspect();
  }

  private onClosed(connection: Connection, problem: string, refusal: Refusal | null): void {
    const target = this.targets.get(connection.endpoint);
    if (target === undefined || target.connection !== connection) return;
    target.connection = null;
    target.problem = problem;
    target.refusal = refusal?.code === "incompatible" || refusal?.code === "unauthorized" ? refusal : null;
    const now = this.ports.clock.monotonicMs();
    if (target.hasAnswered && now - target.dialledMs >= shortLifeMs) beWell(target);
    target.hasAnswered = false;
    target.nextDialMs = now + this.retryMs(target);
    if (connection === this.current) this.current = null;
    if (connection === this.leading) this.loseLeader(problem);
    if (this.isClosed) return;
    this.checkRefusals();
    this.dial();
  }

  /** The leader that answered until now is asked again at once: only its socket may have broken. */
  private retryMs(target: Target): number {
    if (target.refusal !== null) return slowRetry.maxMs * (0.5 + 0.5 * this.ports.random.fraction());
    if (target.tries === 0) return 0;
    if (target.tries <= quickTries) return quickRetryMs * (1 + this.ports.random.fraction());
    return target.backoff.nextMs();
  }

  private checkRefusals(): void {
    const [first, ...others] = this.targets.values();
    if (first === undefined || first.refusal === null) return;
    if (others.every((target) => target.refusal !== null)) this.events.onRefused(first.refusal);
  }

  private welcomed(): readonly Connection[] {
    const connections = [...this.targets.values()].map((target) => target.connection);
    return connections.filter(
      (connection): connection is Connection => connection !== null && connection.welcome !== null,
    );
  }

  /** By our own will: it may be asked again at once. */
  private closeTarget(target: Target): void {
    if (target.connection === null) return;
    target.connection.close();
    target.connection = null;
    target.nextDialMs = Number.NEGATIVE_INFINITY;
  }
}

function beWell(target: Target): void {
  target.tries = 0;
  target.backoff.reset();
}

function shuffled(endpoints: readonly string[], { random }: ClientPorts): readonly string[] {
  const drawn = endpoints.map((endpoint) => ({ endpoint, draw: random.fraction() }));
  return drawn.sort((a, b) => a.draw - b.draw).map(({ endpoint }) => endpoint);
}
