/**
 * A client that speaks the wire protocol by itself, by the rules of the design (not with the client library): it opens a session, takes
 * and gives back locks, waits, cancels, repeats what was not answered, resumes at every new leader, renews, and counts its lease.
 */
import type { Command, Grant, Mode, Outcome, ResumeView } from "@holdfast/lock";
import { encodeCommand } from "@holdfast/wire";
import type { ClientMessage, NodeAddress, Refusal, ServerMessage } from "@holdfast/wire";
import type { LockJudge, RequestFacts } from "./lock-judge.js";
import { UserConnection } from "./user-connection.js";
import type { UserEnd, UserPath } from "./user-connection.js";
import type { VirtualCluster, VirtualNode } from "./virtual-cluster.js";
import { ProcessClock } from "./virtual-clock.js";

type SessionCommand = Extract<Command, { readonly request: number }>;
type WithoutNumbers<T> = T extends unknown ? Omit<T, "session" | "request" | "settled" | "seen"> : never;

interface Open {
  readonly number: number;
  readonly payload: Uint8Array;
  readonly facts: RequestFacts;
  /** cancelling, releasing: another request is under way that ends this one. */
  stage: "asked" | "waiting" | "held" | "cancelling" | "releasing";
  readonly askedAtMs: number;
  sentAtMs: number;
}

interface OpenSession {
  readonly key: string;
  readonly firstSentAtMs: number;
  id: number | null;
  next: number;
  readonly open: Map<number, Open>;
  readonly ended: number[];
  /** Sent, by the client's clock; acknowledged ones count by their sending. */
  readonly keepalives: Map<number, number>;
  lastKeepalive: number;
  leaseStartMs: number;
  /** As it was when this connection was made. */
  leaseBeforeMs: number;
  isClosing: boolean;
}

export interface Chance {
  integer(below: number): number;
}

export interface UserOptions {
  readonly ttlMs: number;
  /** Between two keepalives. */
  readonly renewMs: number;
  readonly names: readonly string[];
  readonly rate: number;
}

export class VirtualUser implements UserEnd {
  readonly name: string;
  readonly id: string;
  readonly clock: ProcessClock;
  /** No new acquires; what is held is given back. */
  isDraining = false;
  private readonly options: UserOptions;
  private readonly cluster: VirtualCluster;
  private readonly judge: LockJudge;
  private readonly path: UserPath;
  private readonly chance: Chance;
  private connection: UserConnection | null = null;
  /** Its node leads, as far as it has said. */
  private isReady = false;
  private isResumed = false;
  private toldBefore = 0;
  private heardMs = 0;
  private seenIndex = 0;
  private session: OpenSession | null = null;
  private sessions = 0;
  private connections = 0;
  private retryAtMs = 0;
  private old: Uint8Array[] = [];

  constructor(
    name: string,
    options: UserOptions,
    cluster: VirtualCluster,
    judge: LockJudge,
    path: UserPath,
    chance: Chance,
  ) {
    this.name = name;
    this.id = name;
    this.options = options;
    this.cluster = cluster;
    this.judge = judge;
    this.path = path;
    this.chance = chance;
    this.clock = new ProcessClock(cluster.clock, options.rate);
    this.tick();
  }

  /** Its process dies; the node may see the closed socket. What it was promised counts to the end of its lease all the same. */
  kill(isNoticed: boolean): void {
    if (isNoticed) this.connection?.drop();
    this.clock.kill();
  }

  get isKilled(): boolean {
    return this.clock.isKilled;
  }

  /** Nothing is asked or held any more. */
  get isDone(): boolean {
    return this.session === null || this.session.open.size === 0;
  }

  describe(): string {
    const open = [...(this.session?.open.values() ?? [])].map(
      ({ number, stage, facts }) => `${number} ${facts.kind} ${stage}`,
    );
    return `${this.name}: session ${this.session?.id} at ${this.connection?.node.id} ${this.isReady ? "ready" : ""} ${this.isResumed ? "resumed" : ""}: ${open.join(", ")}`;
  }

  onNodeGone(node: VirtualNode): void {
    if (this.connection?.node === node) this.connection.breakDown();
  }

  askTransfer(to: string | null): void {
    if (this.isReady) this.send({ kind: "transfer", id: 1, to });
  }

  // Its own time.

  private tick(): void {
    const now = this.clock.monotonicMs();
    this.look(now);
    if (this.connection === null) {
      if (now >= this.retryAtMs) this.connect(this.anyNode());
    } else if (now - this.heardMs > 700 && this.isAwaiting(now)) {
      this.connect(this.anyNode());
    } else if (this.isReady) {
      this.work(now);
    }
    this.clock.setTimer(10 + this.chance.integer(50), () => this.tick());
  }

  /** Silence says something: an answer is due. */
  private isAwaiting(now: number): boolean {
    const { session } = this;
    if (!this.isReady || !this.isResumed || session === null) return true;
    const keepalive = session.keepalives.get(session.lastKeepalive);
    if (keepalive !== undefined && now - keepalive > 500) return true;
    return [...session.open.values()].some(({ stage, sentAtMs }) => stage === "asked" && now - sentAtMs > 500);
  }

  /** The lease is over by the clock: the whole session is lost, whatever the cluster thinks. */
  private look(now: number): void {
    const { session } = this;
    if (session !== null && session.id !== null && now >= this.leaseEndMs(session)) this.lose();
  }

  private leaseEndMs(session: OpenSession): number {
    const { ttlMs } = this.options;
    return session.leaseStartMs + ttlMs - Math.max(ttlMs * 0.02, 250);
  }

  private work(now: number): void {
    const { session } = this;
    if (session === null || session.id === null) {
      if (session === null ? !this.isDraining : now - session.firstSentAtMs > 1_500) this.open(now);
      else if (session !== null) this.sendOpening(session);
      return;
    }
    this.renew(session, now);
    for (const open of session.open.values()) {
      if (open.stage === "asked" && now - open.sentAtMs > 300 + this.chance.integer(300)) this.repeat(open, now);
    }
    if (session.isClosing) return;
    const { chance } = this;
    if (!this.isDraining && session.open.size < 4 && chance.integer(4) === 0) this.acquire(session, now);
    for (const open of [...session.open.values()]) {
      if (open.stage === "held" && (this.isDraining || chance.integer(12) === 0)) this.release(session, open, now);
      else if (open.stage === "waiting" && chance.integer(60) === 0) this.cancel(session, open, now);
      else if (chance.integer(80) === 0) this.repeat(open, now);
    }
    const [late] = this.old.splice(this.chance.integer(8), 1);
    if (late !== undefined && chance.integer(10) === 0) this.send({ kind: "command", payload: late });
    if (chance.integer(100) === 0) this.resume(session);
    else if (!this.isDraining && chance.integer(500) === 0) this.closeSession(session, now);
  }

  private renew(session: OpenSession, now: number): void {
    const { renewMs } = this.options;
    const sent = session.keepalives.get(session.lastKeepalive);
    const isDue = now - session.leaseStartMs >= renewMs && (sent === undefined || now - sent > renewMs / 4);
    if (isDue) this.sendKeepalive(session, now);
  }

  private sendKeepalive(session: OpenSession, now: number): void {
    if (session.id === null) return;
    session.lastKeepalive += 1;
    const number = session.lastKeepalive;
    session.keepalives.set(number, now);
    this.judge.noteKeepalive(session.id, number, this.cluster.clock.nowMs, this.options.rate);
    this.send({ kind: "keepalive", session: session.id, number });
  }

  // Requests.

  private open(now: number): void {
    this.sessions += 1;
    const key = `${this.name.slice(1).padStart(8, "0")}${String(this.sessions).padStart(24, "0")}`;
    const opened = {
      id: null,
      next: 1,
      open: new Map(),
      ended: [],
      keepalives: new Map(),
      lastKeepalive: 0,
      isClosing: false,
    };
    this.session = { ...opened, key, firstSentAtMs: now, leaseStartMs: now, leaseBeforeMs: now };
    this.old = [];
    this.sendOpening(this.session);
  }

  private sendOpening({ key }: OpenSession): void {
    this.send({
      kind: "command",
      payload: encodeCommand({ kind: "openSession", key, ttlMs: this.options.ttlMs, info: this.name }),
    });
  }

  private acquire(session: OpenSession, now: number): void {
    const { chance } = this;
    const all = this.options.names;
    const first = all[chance.integer(all.length)] as string;
    const second = all[chance.integer(all.length)] as string;
    const isSlots = first.startsWith("slots");
    const isPair = !isSlots && !second.startsWith("slots") && chance.integer(4) === 0;
    const names = isPair ? [...new Set([first, second])].sort() : [first];
    const mode: Mode = isSlots ? "slot" : chance.integer(4) === 0 ? "shared" : "exclusive";
    const lockDelayMs = chance.integer(6) === 0 ? 300 : 0;
    const maxHoldMs = chance.integer(8) === 0 ? 1_500 : 0;
    const terms = { slots: isSlots ? 2 : 0, wait: chance.integer(4) > 0, lockDelayMs, maxHoldMs, info: "" };
    this.ask(session, { kind: "acquire", names, mode, ...terms }, { kind: "acquire", names, mode }, now);
  }

  private release(session: OpenSession, held: Open, now: number): void {
    held.stage = "releasing";
    this.forget(held);
    const afterMs = this.chance.integer(8) === 0 ? 100 : 0;
    this.ask(session, { kind: "release", of: held.number, afterMs }, { kind: "release", of: held.number }, now);
  }

  private cancel(session: OpenSession, waiting: Open, now: number): void {
    waiting.stage = "cancelling";
    this.ask(session, { kind: "cancel", of: waiting.number }, { kind: "cancel", of: waiting.number }, now);
  }

  private closeSession(session: OpenSession, now: number): void {
    session.isClosing = true;
    for (const open of session.open.values()) this.forget(open);
    this.ask(session, { kind: "closeSession" }, { kind: "other" }, now);
  }

  private ask(session: OpenSession, command: WithoutNumbers<SessionCommand>, facts: RequestFacts, now: number): void {
    if (session.id === null) return;
    const request = session.next;
    session.next += 1;
    const lowest = Math.min(request, ...session.open.keys());
    const seen = session.ended.filter((number) => number >= lowest).slice(-20);
    const full = {
      session: session.id,
      request,
      settled: lowest,
      seen: this.chance.integer(2) === 0 ? seen : [],
      ...command,
    } as SessionCommand;
    const open: Open = {
      number: request,
      payload: encodeCommand(full),
      facts,
      stage: "asked",
      askedAtMs: now,
      sentAtMs: now,
    };
    session.open.set(request, open);
    this.judge.noteRequest(session.id, request, facts);
    this.send({ kind: "command", payload: open.payload });
  }

  private repeat(open: Open, now: number): void {
    open.sentAtMs = now;
    this.send({ kind: "command", payload: open.payload });
  }

  private end(session: OpenSession, number: number): void {
    const open = session.open.get(number);
    if (open === undefined) return;
    session.open.delete(number);
    session.ended.push(number);
    if (session.ended.length > 40) session.ended.splice(0, 20);
    this.old.push(open.payload);
    if (this.old.length > 8) this.old.shift();
    if (open.stage === "held") this.forget(open);
  }

  // Connections.

  private connect(node: VirtualNode): void {
    this.connection?.drop();
    this.connections += 1;
    this.isReady = false;
    this.isResumed = false;
    this.heardMs = this.clock.monotonicMs();
    this.connection = new UserConnection(this.connections, node, this.cluster.clock, this.path, this);
    this.send({
      kind: "hello",
      protocol: 1,
      features: [],
      clusterId: null,
      seenIndex: this.seenIndex,
      info: this.name,
    });
  }

  private anyNode(): VirtualNode {
    const { nodes } = this.cluster;
    return nodes[this.chance.integer(nodes.length)] as VirtualNode;
  }

  private send(message: ClientMessage): void {
    this.connection?.sendUp(message);
  }

  onClosed(connection: UserConnection): void {
    if (this.connection === connection) this.leave();
  }

  private leave(): void {
    this.connection?.drop();
    this.connection = null;
    this.isReady = false;
    this.isResumed = false;
    this.retryAtMs = this.clock.monotonicMs() + 20 + this.chance.integer(50);
  }

  private follow(leader: NodeAddress | null): void {
    this.isReady = false;
    this.isResumed = false;
    if (leader === null) return;
    if (leader.id !== this.connection?.node.id) {
      this.connect(this.cluster.node(leader.id));
      return;
    }
    this.isReady = true;
    const { session } = this;
    if (session === null) return;
    if (session.id === null) this.sendOpening(session);
    else this.resume(session);
  }

  private resume(session: OpenSession): void {
    if (session.id === null) return;
    const now = this.clock.monotonicMs();
    this.isResumed = false;
    session.leaseBeforeMs = session.leaseStartMs;
    this.toldBefore = this.judge.toldIndex;
    this.send({ kind: "resume", session: session.id, key: session.key });
    this.sendKeepalive(session, now);
    for (const open of session.open.values()) if (open.stage === "asked") this.repeat(open, now);
  }

  // What it is told.

  /** What was told when the resume under way was sent. */
  get resumedAfter(): number {
    return this.toldBefore;
  }

  onMessage(connection: UserConnection, message: ServerMessage): void {
    if (connection !== this.connection) return;
    this.look(this.clock.monotonicMs());
    this.heardMs = this.clock.monotonicMs();
    const { session } = this;
    if (message.kind === "welcome" || message.kind === "leader") this.follow(message.leader);
    else if (message.kind === "refused") this.onRefused(message, session);
    else if (session === null) return;
    else if (message.kind === "sessionOpened") this.onOpened(session, message.key, message.session);
    else if (!("session" in message) || message.session !== session.id) return;
    else this.onSessionMessage(session, message);
  }

  private onSessionMessage(session: OpenSession, message: ServerMessage): void {
    switch (message.kind) {
      case "resumed":
        this.onResumed(session, message);
        return;
      case "acknowledged":
        this.onAcknowledged(session, message.number);
        return;
      case "outcome":
        this.judge.toldIndex = Math.max(this.judge.toldIndex, message.index);
        this.seenIndex = Math.max(this.seenIndex, message.index);
        this.onOutcome(session, message.request, message.outcome);
        return;
      case "rejected":
        if (message.rejection.kind === "sessionGone") this.lose();
        // A late duplicate's answer; of an open request it would be a lie.
        else if (session.open.has(message.request))
          throw new Error(`${this.name}: open request ${message.request} is settled`);
        return;
      case "sessionEnded":
        this.lose();
        return;
      case "superseded":
        this.leave();
        return;
      default:
        return;
    }
  }

  private onOpened(session: OpenSession, key: string, id: number): void {
    if (session.key !== key || session.id !== null) return;
    session.id = id;
    this.isResumed = true;
  }

  private onAcknowledged(session: OpenSession, number: number): void {
    for (const [sent, atMs] of session.keepalives) {
      if (sent > number) continue;
      session.leaseStartMs = Math.max(session.leaseStartMs, atMs);
      session.keepalives.delete(sent);
    }
  }

  private onResumed(session: OpenSession, view: ResumeView): void {
    this.isResumed = true;
    const holds = new Set(view.holds.map(({ request }) => request));
    const ends = new Set(view.outcomes.map(({ request }) => request));
    for (const open of [...session.open.values()]) {
      if (open.stage === "held" && !holds.has(open.number) && !ends.has(open.number))
        throw new Error(`${this.name}: hold ${open.number} is not listed`);
    }
    for (const { request, grants, maxHoldMs } of view.holds)
      this.onOutcome(session, request, { kind: "granted", grants, maxHoldMs });
    for (const { request, outcome } of view.outcomes) this.onOutcome(session, request, outcome);
  }

  private onOutcome(session: OpenSession, number: number, outcome: Outcome): void {
    const open = session.open.get(number);
    if (open === undefined) return;
    if (open.facts.kind === "acquire") this.onAcquireOutcome(session, open, outcome);
    else if (outcome.kind === "sessionClosed") this.lose();
    else this.onEndingOutcome(session, open, outcome);
  }

  private onAcquireOutcome(session: OpenSession, open: Open, outcome: Outcome): void {
    if (outcome.kind === "waiting") {
      if (open.stage === "asked") open.stage = "waiting";
    } else if (outcome.kind === "granted") {
      this.onGranted(session, open, outcome.grants, outcome.maxHoldMs);
    } else {
      this.end(session, open.number);
    }
  }

  /** Of a release or a cancel: what they spoke of is over, unless a grant came before the cancel. */
  private onEndingOutcome(session: OpenSession, ending: Open, outcome: Outcome): void {
    this.end(session, ending.number);
    if (ending.facts.kind !== "release" && ending.facts.kind !== "cancel") return;
    const target = session.open.get(ending.facts.of);
    if (target === undefined) return;
    if (outcome.kind !== "alreadyGranted") this.end(session, target.number);
    else if (target.stage === "cancelling") this.release(session, target, this.clock.monotonicMs());
  }

  private onGranted(session: OpenSession, open: Open, grants: readonly Grant[], maxHoldMs: number): void {
    if (open.facts.kind !== "acquire" || open.stage === "held" || open.stage === "releasing") return;
    if (open.stage === "cancelling") {
      // The cancel under way will be told "alreadyGranted"; the release need not wait for that.
      this.release(session, open, this.clock.monotonicMs());
      return;
    }
    open.stage = "held";
    if (session.isClosing) return;
    const { mode } = open.facts;
    const heldFromMs = Math.max(open.askedAtMs, this.isResumed ? session.leaseStartMs : session.leaseBeforeMs);
    const holdEndMs = maxHoldMs === 0 ? Infinity : heldFromMs + maxHoldMs - Math.max(maxHoldMs * 0.02, 250);
    for (const { name } of grants) {
      const endsAtMs = (): number => Math.min(holdEndMs, this.leaseEndMs(session)) / this.options.rate;
      this.judge.noteBelief(name, { user: this.name, mode, endsAtMs }, this.cluster.clock.nowMs);
    }
  }

  private onRefused(message: Extract<ServerMessage, { kind: "refused" }>, session: OpenSession | null): void {
    const { refusal } = message;
    if (refusal.code === "not_leader") this.onNotLeader(refusal);
    else if (refusal.code === "invalid_argument" && refusal.argument === "session") this.leave();
    else if (refusal.code === "session_gone" && session !== null && message.session === session.id) this.lose();
    else if (refusal.code === "invalid_argument" || refusal.code === "incompatible")
      throw new Error(`${this.name}: ${JSON.stringify(refusal)}`);
  }

  private onNotLeader(refusal: Extract<Refusal, { code: "not_leader" }>): void {
    if (refusal.leader !== null && refusal.leader.id !== this.connection?.node.id) this.follow(refusal.leader);
    else this.leave();
  }

  private forget(open: Open): void {
    if (open.facts.kind !== "acquire") return;
    for (const name of open.facts.names) this.judge.dropBelief(name, this.name);
  }

  private lose(): void {
    for (const open of this.session?.open.values() ?? []) this.forget(open);
    this.session = null;
  }
}
