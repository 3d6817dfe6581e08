/** One node around a real lock machine, for clients alone: what arrives is committed a little later, and told to the history. */
import { LockMachine } from "@holdfast/lock";
import type { Command, Effect, SessionId } from "@holdfast/lock";
import type { Socket, SocketEvents, Transport } from "@holdfast/client";
import { decodeClientFrame, decodeCommand, encodeServerFrame, limits } from "@holdfast/wire";
import type { ClientMessage, NodeAddress, Refusal, ServerMessage } from "@holdfast/wire";
import type { HistorySink } from "../src/clients/index.js";
import type { SimulatedProcess } from "../src/process.js";
import type { Random } from "../src/random.js";
import type { Cancellable, Scheduler } from "../src/scheduler.js";

const roundMs = 2;
const address: NodeAddress = { id: "n1", client: "n1:1" };

class Link {
  readonly owner: TestCluster;
  readonly process: SimulatedProcess;
  readonly events: SocketEvents;
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

  /** The same node leads again, in another term: all that it knew of its connections is gone. */
  elect(): void {
    this.sink.emit({ kind: "deposed", node: "n1", term: this.term });
    this.owners.clear();
    this.openers.clear();
    this.term += 1;
    this.begin();
    for (const session of this.leases.keys()) this.renew(session);
    for (const link of this.links) {
      link.say({ kind: "leader", leader: null });
      link.say({ kind: "leader", leader: address });
    }
  }

  /** Every socket breaks. */
  cut(): void {
    for (const link of this.links) {
      link.down(() => {
        link.isClosed = true;
        link.events.onClosed("cut");
      });
    }
    this.links.clear();
    this.owners.clear();
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
      link.up(() => this.links.delete(link));
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

  private onFrame(link: Link, frame: Uint8Array): void {
    if (!this.links.has(link)) return;
    let messages: readonly ClientMessage[] = [];
    try {
      messages = decodeClientFrame(frame);
    } catch {
      this.links.delete(link);
      link.down(() => {
        link.isClosed = true;
        link.events.onClosed("garbage");
      });
    }
    for (const message of messages) this.onMessage(link, message);
  }

  private onMessage(link: Link, message: ClientMessage): void {
    const { term } = this;
    if (message.kind === "hello") {
      const common = { protocol: limits.protocolVersion, features: [], node: "n1", clusterId: "c1" };
      link.say({ kind: "welcome", ...common, leader: address, nodes: [address] });
      return;
    }
    if (message.kind === "keepalive") {
      const { session, number } = message;
      this.sink.emit({ kind: "keepaliveReceived", node: "n1", term, session, number });
      this.renew(session);
    }
    this.scheduler.after(roundMs, "round", () => {
      if (this.term === term) this.decide(link, message);
    });
  }

  private decide(link: Link, message: Exclude<ClientMessage, { kind: "hello" }>): void {
    switch (message.kind) {
      case "command": {
        const command = decodeCommand(message.payload);
        if (command.kind === "openSession") this.openers.set(command.key, link);
        else if ("session" in command && this.owners.get(command.session) !== link) return;
        this.apply(command);
        return;
      }
      case "resume": {
        const view = this.machine.resumeView(message.session, message.key);
        if (view === null) return this.refuseGone(link, message.session);
        const former = this.owners.get(message.session);
        if (former !== link) former?.say({ kind: "superseded", session: message.session });
        this.owners.set(message.session, link);
        link.say({ kind: "resumed", ...view });
        return;
      }
      case "keepalive": {
        const { session, number } = message;
        if (this.machine.sessionView(session) === null) return this.refuseGone(link, session);
        this.sink.emit({ kind: "keepaliveAcknowledged", node: "n1", term: this.term, session, number });
        link.say({ kind: "acknowledged", session, number });
        return;
      }
      case "query":
        return this.answer(link, message);
      case "forceRelease": {
        const { id, name, token, principal, lockDelayMs } = message;
        for (const effect of this.apply({ kind: "forceRelease", name, token, principal, lockDelayMs })) {
          if (effect.kind === "forced")
            link.say({ kind: "forced", id, ended: effect.ended, holders: effect.holders.length });
        }
        return;
      }
      case "transfer":
        link.say({ kind: "transferred", id: message.id, leader: address });
        this.elect();
        return;
      default:
        message satisfies never;
    }
  }

  private answer(link: Link, { id, query }: Extract<ClientMessage, { kind: "query" }>): void {
    const { index, machine } = this;
    if (query.kind === "inspect") {
      link.say({ kind: "answer", id, result: { kind: "lock", index, lock: machine.lockView(query.name, 16) } });
    } else if (query.kind === "list") {
      link.say({
        kind: "answer",
        id,
        result: { kind: "locks", index, ...machine.list(query.prefix, query.after, query.limit) },
      });
    } else if (query.kind === "sessions") {
      const sessions = [...machine.sessions()].slice(0, query.limit);
      link.say({ kind: "answer", id, result: { kind: "sessions", index, sessions } });
    }
  }

  private refuseGone(link: Link, session: SessionId): void {
    const refusal: Refusal = { code: "session_gone", reason: this.machine.endReason(session) };
    link.say({ kind: "refused", session, request: null, id: null, key: null, refusal });
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
        this.owners.set(effect.session, link);
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
