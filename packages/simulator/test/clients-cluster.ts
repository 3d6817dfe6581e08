/**
 * One node around a real lock machine, for clients alone: what arrives is committed a little later, in its order, and told to the history.
 * As the server's, it leaves nothing unanswered while a connection stays and its leader leads: a command is proposed, kept until its
 * session is resumed, or refused.
 */
import { LockMachine } from "@holdfast/lock";
import type { Command, Effect, SessionId } from "@holdfast/lock";
import type { Socket, SocketEvents, Transport } from "@holdfast/client";
import { decodeClientFrame, decodeCommand, encodeServerFrame, limits } from "@holdfast/wire";
import type { ClientMessage, NodeAddress, Refusal, ServerMessage } from "@holdfast/wire";
import type { HistorySink } from "../src/clients/index.js";
import type { SimulatedProcess } from "../src/process.js";
import type { Random } from "../src/random.js";
import type { Cancellable, Scheduler } from "../src/scheduler.js";

type Message<Kind extends ClientMessage["kind"]> = Extract<ClientMessage, { readonly kind: Kind }>;

/** A resume that awaits its round, and what has come for its session since. */
interface Resume {
  readonly key: string;
  readonly kept: ClientMessage[];
}

/** What runs after a round; `onLost` if the term ends before. */
interface Round {
  readonly run: () => void;
  readonly onLost: () => void;
}

const roundMs = 2;
const address: NodeAddress = { id: "n1", client: "n1:1" };
const notLeader: Refusal = { code: "not_leader", leader: null };
const notResumed: Refusal = {
  code: "invalid_argument",
  argument: "session",
  problem: "this connection has not resumed that session",
};

class Link {
  readonly owner: TestCluster;
  readonly process: SimulatedProcess;
  readonly events: SocketEvents;
  readonly resumes: Map<SessionId, Resume> = new Map();
  isGreeted = false;
  isClosed = false;
  private lastUpMs = 0;
  private lastDownMs = 0;

  constructor(owner: TestCluster, process: SimulatedProcess, events: SocketEvents) {
    this.owner = owner;
    this.process = process;
    this.events = events;
  }

  up(run: () => void): void {
    this.lastUpMs = Math.max(this.lastUpMs, this.owner.scheduler.nowMs + this.owner.latencyMs()) + 1e-6;
    this.owner.scheduler.at(this.lastUpMs, "up", run);
  }

  down(run: () => void): void {
    this.lastDownMs = Math.max(this.lastDownMs, this.owner.scheduler.nowMs + this.owner.latencyMs()) + 1e-6;
    this.owner.scheduler.at(this.lastDownMs, "down", () =>
      this.process.deliver(() => {
        if (!this.isClosed) run();
      }),
    );
  }

  say(message: ServerMessage): void {
    const frame = encodeServerFrame([message]);
    this.down(() => this.events.onFrame(frame));
  }

  refuse(refusal: Refusal, asked: { session?: SessionId; request?: number; id?: number }): void {
    const { session = null, request = null, id = null } = asked;
    this.say({ kind: "refused", session, request, id, key: null, refusal });
  }

  hangUp(problem: string): void {
    this.down(() => {
      this.isClosed = true;
      this.events.onClosed(problem);
    });
  }
}

export class TestCluster {
  readonly scheduler: Scheduler;
  readonly machine: LockMachine = new LockMachine();
  private readonly sink: HistorySink;
  private readonly random: Random;
  private readonly links = new Set<Link>();
  private readonly owners = new Map<SessionId, Link>();
  private readonly openers = new Map<string, Link>();
  private readonly leases = new Map<SessionId, { readonly ttlMs: number; timer: Cancellable }>();
  private readonly rounds = new Set<Round>();
  private lastRoundMs = 0;
  private index = 0;
  private term = 1;

  constructor(scheduler: Scheduler, random: Random, sink: HistorySink) {
    this.scheduler = scheduler;
    this.random = random;
    this.sink = sink;
    sink.emit({ kind: "started", node: "n1", index: 0 });
    sink.emit({ kind: "quorum", up: true });
    this.begin();
  }

  transportFor(process: SimulatedProcess): Transport {
    return { open: (_endpoint, events) => this.open(process, events) };
  }

  latencyMs(): number {
    return this.random.logUniform(0.1, 2);
  }

  /** The same node leads again, in another term: its connections and what was under way are forgotten, the silence of sessions isn't. */
  elect(): void {
    this.sink.emit({ kind: "deposed", node: "n1", term: this.term });
    for (const { onLost } of this.rounds) onLost();
    this.rounds.clear();
    this.owners.clear();
    this.openers.clear();
    this.term += 1;
    this.begin();
    for (const link of this.links) {
      link.resumes.clear();
      if (!link.isGreeted) continue;
      link.say({ kind: "leader", leader: null });
      link.say({ kind: "leader", leader: address });
    }
  }

  /** Every socket breaks. */
  cut(): void {
    for (const link of this.links) this.hangUp(link, "cut");
  }

  end(): void {
    const { index } = this;
    const stateHash = this.machine.stateHash();
    this.sink.emit({
      kind: "final",
      node: "n1",
      commitIndex: index,
      lastApplied: index,
      stateHash,
      configuration: null,
    });
  }

  private open(process: SimulatedProcess, events: SocketEvents): Socket {
    const link = new Link(this, process, events);
    link.up(() => {
      this.links.add(link);
      link.down(() => events.onOpened());
    });
    const close = (): void => {
      link.isClosed = true;
      link.up(() => this.forget(link));
    };
    return {
      send: (frame) => link.up(() => this.onFrame(link, frame)),
      ping: () => link.up(() => link.down(() => events.onPong())),
      close,
      terminate: close,
    };
  }

  private begin(): void {
    this.sink.emit({ kind: "leader", node: "n1", term: this.term });
    this.commit(null);
    this.sink.emit({ kind: "serving", node: "n1", term: this.term });
  }

  private hangUp(link: Link, problem: string): void {
    this.forget(link);
    link.hangUp(problem);
  }

  private forget(link: Link): void {
    this.links.delete(link);
    link.resumes.clear();
    for (const [session, owner] of this.owners) if (owner === link) this.owners.delete(session);
    for (const [key, opener] of this.openers) if (opener === link) this.openers.delete(key);
  }

  private onFrame(link: Link, frame: Uint8Array): void {
    let messages: readonly ClientMessage[] = [];
    try {
      messages = decodeClientFrame(frame);
    } catch {
      if (this.links.has(link)) this.hangUp(link, "garbage");
    }
    for (const message of messages) if (this.links.has(link)) this.onMessage(link, message);
  }

  private onMessage(link: Link, message: ClientMessage): void {
    if (!link.isGreeted && message.kind !== "hello") return this.hangUp(link, "hello comes first");
    switch (message.kind) {
      case "hello": {
        const common = { protocol: limits.protocolVersion, features: [], node: "n1", clusterId: "c1" };
        link.isGreeted = true;
        link.say({ kind: "welcome", ...common, leader: address, nodes: [address] });
        return;
      }
      case "command":
        return this.onCommand(link, message);
      case "resume":
        return this.onResume(link, message);
      case "keepalive":
        return this.onKeepalive(link, message);
      case "query":
        this.afterRound(
          () => this.answer(link, message),
          () => link.refuse(notLeader, { id: message.id }),
        );
        return;
      case "forceRelease":
        this.afterRound(
          () => this.forceRelease(link, message),
          () => link.refuse({ code: "unknown_outcome" }, { id: message.id }),
        );
        return;
      case "transfer":
        this.afterRound(() => {
          link.say({ kind: "transferred", id: message.id, leader: address });
          this.elect();
        });
        return;
      case "finalize":
        this.afterRound(() => link.say({ kind: "finalized", id: message.id, version: 1 }));
        return;
      case "rotateKey":
      case "changeMembers":
      case "watch":
        link.refuse({ code: "overloaded" }, { id: message.id });
        return;
      case "unwatch":
        return;
      default:
        message satisfies never;
    }
  }

  /** In the order of the log: the scheduler shuffles what is due at one moment. */
  private afterRound(run: () => void, onLost: () => void = () => undefined): void {
    const round: Round = { run, onLost };
    this.rounds.add(round);
    this.lastRoundMs = Math.max(this.lastRoundMs, this.scheduler.nowMs + roundMs) + 1e-6;
    this.scheduler.at(this.lastRoundMs, "round", () => {
      if (this.rounds.delete(round)) run();
    });
  }

  private onCommand(link: Link, message: Message<"command">): void {
    const command = decodeCommand(message.payload);
    if (command.kind === "openSession") this.openers.set(command.key, link);
    else if ("request" in command) {
      const { session, request } = command;
      const resume = link.resumes.get(session);
      if (resume !== undefined) return void resume.kept.push(message);
      if (this.owners.get(session) !== link) return link.refuse(notResumed, { session, request });
    }
    this.afterRound(() => this.apply(command));
  }

  private onResume(link: Link, { session, key }: Message<"resume">): void {
    link.resumes.set(session, { key, kept: [] });
    this.afterRound(
      () => this.finishResume(link, session),
      () => {
        if (link.resumes.delete(session)) link.refuse(notLeader, { session });
      },
    );
  }

  private finishResume(link: Link, session: SessionId): void {
    const resume = link.resumes.get(session);
    if (resume === undefined) return;
    link.resumes.delete(session);
    const view = this.machine.resumeView(session, resume.key);
    if (view === null) return this.refuseGone(link, session);
    this.own(link, session);
    link.say({ kind: "resumed", ...view });
    for (const message of resume.kept) this.onMessage(link, message);
  }

  /** A connection that is left without any session has no business here. */
  private own(link: Link, session: SessionId): void {
    const former = this.owners.get(session);
    this.owners.set(session, link);
    if (former === undefined || former === link) return;
    former.say({ kind: "superseded", session });
    if (former.resumes.size === 0 && ![...this.owners.values()].includes(former)) this.hangUp(former, "superseded");
  }

  private onKeepalive(link: Link, message: Message<"keepalive">): void {
    const { session, number } = message;
    const resume = link.resumes.get(session);
    if (resume !== undefined) return void resume.kept.push(message);
    if (this.owners.get(session) !== link) return link.refuse(notResumed, { session });
    const common = { node: "n1", term: this.term, session, number };
    this.sink.emit({ kind: "keepaliveReceived", ...common });
    this.renew(session);
    this.afterRound(() => {
      if (this.machine.sessionView(session) === null) return this.refuseGone(link, session);
      this.sink.emit({ kind: "keepaliveAcknowledged", ...common });
      this.owners.get(session)?.say({ kind: "acknowledged", session, number });
    });
  }

  private forceRelease(link: Link, message: Message<"forceRelease">): void {
    const { id, ...command } = message;
    for (const effect of this.apply(command)) {
      if (effect.kind !== "forced") continue;
      link.say({ kind: "forced", id, ended: effect.ended, holders: effect.holders.length });
    }
  }

  private answer(link: Link, { id, query }: Message<"query">): void {
    const { index, machine } = this;
    if (query.kind === "inspect") {
      link.say({ kind: "answer", id, result: { kind: "lock", index, lock: machine.lockView(query.name, 16) } });
    } else if (query.kind === "list") {
      const listed = machine.list(query.prefix, query.after, query.limit);
      link.say({ kind: "answer", id, result: { kind: "locks", index, ...listed } });
    } else if (query.kind === "sessions") {
      const sessions = [...machine.sessions()].slice(0, query.limit);
      link.say({ kind: "answer", id, result: { kind: "sessions", index, sessions } });
    }
  }

  private refuseGone(link: Link, session: SessionId): void {
    link.refuse({ code: "session_gone", reason: this.machine.endReason(session) }, { session });
  }

  private apply(command: Command): readonly Effect[] {
    const effects = this.commit(command);
    for (const effect of effects) this.onEffect(effect);
    return effects;
  }

  private commit(command: Command | null): readonly Effect[] {
    this.index += 1;
    const { index, term } = this;
    const isTimed = command !== null && (command.kind === "expireSessions" || command.kind === "suspectSessions");
    const entry = command === null ? ({ kind: "noop" } as const) : ({ kind: "command", command } as const);
    const hash = String(index);
    this.sink.emit({ kind: "committed", index, term, hash, decidedInTerm: isTimed ? term : null, entry });
    const effects = command === null ? [] : this.machine.apply(index, command);
    const told = command === null ? null : effects;
    this.sink.emit({ kind: "applied", node: "n1", index, hash, stateHash: null, effects: told });
    return effects;
  }

  private onEffect(effect: Effect): void {
    switch (effect.kind) {
      case "sessionOpened": {
        const link = this.openers.get(effect.key);
        if (!this.leases.has(effect.session)) this.renew(effect.session, effect.ttlMs);
        if (link === undefined) return;
        this.openers.delete(effect.key);
        this.own(link, effect.session);
        link.say(effect);
        return;
      }
      case "outcome":
        this.owners.get(effect.session)?.say({ ...effect, index: this.index });
        return;
      case "rejected":
        this.owners.get(effect.session)?.say(effect);
        return;
      case "sessionEnded":
        this.leases.get(effect.session)?.timer.cancel();
        this.leases.delete(effect.session);
        this.owners.get(effect.session)?.say(effect);
        this.owners.delete(effect.session);
        return;
      case "holdBegan":
        if (effect.maxHoldMs === 0) return;
        this.scheduler.after(effect.maxHoldMs * 1.01, "maxHold", () => {
          const { session, of, token } = effect;
          this.apply({ kind: "endHold", session, of, token });
        });
        return;
      case "lockDelayBegan":
        this.scheduler.after(effect.delayMs * 1.01, "delay", () => {
          this.apply({ kind: "endLockDelay", name: effect.name, index: effect.index });
        });
        return;
      default:
    }
  }

  private renew(session: SessionId, openedTtlMs = 0): void {
    const former = this.leases.get(session);
    if (former === undefined && openedTtlMs === 0) return;
    former?.timer.cancel();
    const ttlMs = former?.ttlMs ?? openedTtlMs;
    const timer = this.scheduler.after(ttlMs * 1.01 + roundMs, "expiry", () => {
      this.apply({ kind: "suspectSessions", ids: [session], eighths: 8 });
      this.apply({ kind: "expireSessions", ids: [session] });
    });
    this.leases.set(session, { ttlMs, timer });
  }
}
