/**
 * A correct lock service, as naive as can be: one log that never forks, leaders that come and go, lease clocks in eighths. It writes down what
 * a producer of histories would.
 */
import type { Effect, LogCommand, LogEntry } from "../../src/index.js";
import { Machine } from "./machine.js";
import type { Due, World } from "./world.js";

/** How the service reaches a client; false: the message was lost. */
export interface Receiver {
  readonly name: string;
  readonly isReachable: boolean;
  onEffect(index: number, effect: Effect): void;
  onAcknowledged(number: number): void;
  onServing(): void;
}

interface Lease {
  readonly unitMs: number;
  heardAt: number;
  isHeard: boolean;
  credited: number;
  /** Of silence, as applied. */
  count: number;
  due: Due | null;
}

interface Node {
  readonly name: string;
  isUp: boolean;
  applied: number;
}

interface LoggedEntry {
  readonly hash: string;
  readonly stateHash: string | null;
  readonly effects: readonly Effect[] | null;
}

const rateMargin = 1.01;

export class Service {
  readonly machine = new Machine();
  /** Between client and leader, one way. */
  readonly latencyMs = 2;
  readonly owners: Map<number, Receiver> = new Map();
  private readonly world: World;
  private readonly receivers: Receiver[] = [];
  private readonly opening: Map<string, Receiver> = new Map();
  private readonly leases: Map<number, Lease> = new Map();
  private readonly log: LoggedEntry[] = [];
  private readonly all: Node[];
  private leader: Node | null = null;
  private term = 0;
  private isServing = false;
  private timers: Due[] = [];
  private readonly isHashed: boolean;

  /** `isHashed`: nodes tell a hash of their state at each entry. */
  constructor(world: World, isHashed: boolean) {
    this.world = world;
    this.isHashed = isHashed;
    this.all = world.nodes.map((name) => ({ name, isUp: true, applied: 0 }));
    for (const { name } of this.all) world.record({ kind: "started", node: name, index: 0 });
    world.record({ kind: "quorum", up: true });
  }

  get lastIndex(): number {
    return this.log.length;
  }

  get leaderName(): string | null {
    return this.leader?.name ?? null;
  }

  get currentTerm(): number {
    return this.term;
  }

  get serves(): boolean {
    return this.isServing;
  }

  join(receiver: Receiver): void {
    this.receivers.push(receiver);
  }

  // Leaders and nodes.

  /** Another node wins at once; its clocks begin 1 ms later. */
  elect(at: number): void {
    this.depose();
    const candidates = this.all.filter(({ isUp }) => isUp);
    const node = candidates[at % candidates.length];
    if (node === undefined || candidates.length * 2 <= this.all.length) return;
    this.term += 1;
    this.leader = node;
    const { term } = this;
    this.world.record({ kind: "leader", node: node.name, term });
    this.world.after(1, () => {
      if (this.term !== term || this.leader !== node) return;
      this.commit({ kind: "noop" });
      this.serve(node);
    });
  }

  depose(): void {
    if (this.leader !== null) this.world.record({ kind: "deposed", node: this.leader.name, term: this.term });
    this.leader = null;
    this.isServing = false;
    for (const timer of this.timers) timer.isCancelled = true;
    this.timers = [];
    for (const { due } of this.leases.values()) if (due !== null) due.isCancelled = true;
  }

  /** One at most is down. */
  crash(at: number): void {
    if (this.all.some(({ isUp }) => !isUp)) return;
    const node = this.all[at % this.all.length] as Node;
    if (node === this.leader) this.depose();
    this.world.record({ kind: "crashed", process: node.name });
    node.isUp = false;
  }

  /** From its own snapshot of `index`, or of what it had applied if that is less. */
  restart(index: number): void {
    const node = this.all.find(({ isUp }) => !isUp);
    if (node === undefined) return;
    node.isUp = true;
    node.applied = Math.min(node.applied, index);
    this.world.record({ kind: "started", node: node.name, index: node.applied });
  }

  /** A node that lags is given the machine of another. */
  install(): void {
    const node = this.all.find(({ isUp, applied }) => isUp && applied < this.log.length);
    if (node === undefined) return;
    node.applied = this.log.length;
    const { stateHash } = this.log[node.applied - 1] as LoggedEntry;
    this.world.record({ kind: "installed", node: node.name, index: node.applied, stateHash });
  }

  /** Followers apply what is committed. */
  catchUp(): void {
    for (const node of this.all.filter(({ isUp }) => isUp)) {
      while (node.applied < this.log.length) this.applyAt(node, node.applied % 2 === 0);
    }
  }

  rest(): void {
    for (const node of this.all) if (!node.isUp) this.restart(node.applied);
    this.catchUp();
    const stateHash = this.machine.hash;
    for (const { name: node, applied: lastApplied } of this.all)
      this.world.record({ kind: "final", node, commitIndex: lastApplied, lastApplied, stateHash, configuration: "c" });
  }

  // What clients ask.

  /** An openSession or a numbered command, on its way. */
  receive(from: Receiver, command: LogCommand): void {
    this.world.after(this.latencyMs, () => {
      if (!this.isServing || !from.isReachable) return;
      if (command.kind === "openSession") this.opening.set(command.key, from);
      const { term } = this;
      this.world.after(1, () => {
        if (this.term === term && this.isServing) this.commit({ kind: "command", command });
      });
    });
  }

  receiveKeepalive(from: Receiver, session: number, number: number): void {
    this.world.after(this.latencyMs, () => {
      const { leader, term } = this;
      if (leader === null || !this.isServing || !from.isReachable) return;
      const lease = this.leases.get(session);
      if (lease === undefined) return;
      this.world.record({ kind: "keepaliveReceived", node: leader.name, term, session, number });
      lease.heardAt = this.world.now;
      lease.isHeard = true;
      lease.credited = 0;
      this.arm(session, lease);
      this.world.after(1, () => this.acknowledge(from, session, number, term));
    });
  }

  /** A linearizable read at the leader. */
  read(from: Receiver, name: string, done: (holders: ReturnType<Machine["holdersOf"]>) => void): void {
    this.world.after(this.latencyMs, () => {
      if (!this.isServing || !from.isReachable) return;
      const holders = this.machine.holdersOf(name);
      this.world.after(this.latencyMs, () => done(holders));
    });
  }

  // The log.

  commit(entry: LogEntry, decidedInTerm: number | null = null): readonly Effect[] {
    const index = this.log.length + 1;
    const { term, leader } = this;
    const hash = `h${index}`;
    this.world.record({ kind: "committed", index, term, hash, decidedInTerm, entry });
    const effects = entry.kind === "command" ? this.machine.apply(index, entry.command) : null;
    this.log.push({ hash, stateHash: this.isHashed ? this.machine.hash : null, effects });
    if (leader !== null) while (leader.applied < index) this.applyAt(leader, true);
    for (const effect of effects ?? []) this.onEffect(index, effect);
    return effects ?? [];
  }

  private applyAt(node: Node, tells: boolean): void {
    const { hash, stateHash, effects } = this.log[node.applied] as LoggedEntry;
    node.applied += 1;
    const said = tells ? effects : null;
    this.world.record({ kind: "applied", node: node.name, index: node.applied, hash, stateHash, effects: said });
  }

  private onEffect(index: number, effect: Effect): void {
    this.keepClocks(effect);
    if (effect.kind === "sessionOpened") {
      const asker = this.opening.get(effect.key);
      if (asker !== undefined) this.owners.set(effect.session, asker);
      this.tell(asker ?? null, index, effect);
    } else if (effect.kind === "outcome" || effect.kind === "rejected" || effect.kind === "sessionEnded") {
      this.tell(this.owners.get(effect.session) ?? null, index, effect);
    }
  }

  private tell(receiver: Receiver | null, index: number, effect: Effect): void {
    const { term } = this;
    this.world.after(this.latencyMs, () => {
      if (receiver?.isReachable === true && this.term === term) receiver.onEffect(index, effect);
    });
  }

  // Time.

  private serve(node: Node): void {
    this.isServing = true;
    this.world.record({ kind: "serving", node: node.name, term: this.term });
    for (const [session, lease] of this.leases) {
      lease.heardAt = this.world.now;
      lease.isHeard = false;
      lease.credited = 0;
      this.arm(session, lease);
    }
    for (const { name, index } of this.machine.delays) {
      const same = this.machine.delays.filter((delay) => delay.name === name && delay.index === index);
      this.armDelay(name, index, Math.max(...same.map(({ delayMs }) => delayMs)));
    }
    for (const { session, request, maxHoldMs, grants } of this.machine.acquires)
      if (grants?.[0] !== undefined && maxHoldMs > 0) this.armHold(session.id, request, grants[0].token, maxHoldMs);
    for (const receiver of this.receivers) if (receiver.isReachable) receiver.onServing();
  }

  private keepClocks(effect: Effect): void {
    switch (effect.kind) {
      case "sessionOpened": {
        if (!effect.isNew) return;
        const unitMs = (effect.ttlMs * rateMargin) / 8;
        const { now: heardAt } = this.world;
        const lease: Lease = { unitMs, heardAt, isHeard: true, credited: 0, count: 0, due: null };
        this.leases.set(effect.session, lease);
        this.arm(effect.session, lease);
        return;
      }
      case "sessionEnded": {
        const lease = this.leases.get(effect.session);
        if (lease?.due) lease.due.isCancelled = true;
        this.leases.delete(effect.session);
        return;
      }
      case "silence": {
        const lease = this.leases.get(effect.session);
        if (lease !== undefined) lease.count = effect.count;
        return;
      }
      case "holdBegan":
        if (effect.maxHoldMs > 0) this.armHold(effect.session, effect.of, effect.token, effect.maxHoldMs);
        return;
      case "lockDelayBegan":
        this.armDelay(effect.name, effect.index, effect.delayMs);
        return;
      default:
        return;
    }
  }

  private arm(session: number, lease: Lease): void {
    if (lease.due !== null) lease.due.isCancelled = true;
    const leader = this.leader?.name ?? "";
    const eighths = Math.max(lease.isHeard ? 4 : 1, lease.credited + 1);
    const dueAt = lease.heardAt + this.world.byClock(leader, eighths * lease.unitMs);
    lease.due = this.world.after(dueAt - this.world.now, () => this.onSilence(session, lease, eighths));
  }

  private onSilence(session: number, lease: Lease, eighths: number): void {
    if (!this.isServing) return;
    const { term } = this;
    const added = Math.min(8 - lease.count, eighths - lease.credited);
    lease.credited = eighths;
    if (added > 0) this.commitTimed({ kind: "suspectSessions", ids: [session], eighths: added }, term);
    if (lease.count >= 8) this.commitTimed({ kind: "expireSessions", ids: [session] }, term);
    else this.arm(session, lease);
  }

  /** After a quorum round. */
  private acknowledge(from: Receiver, session: number, number: number, term: number): void {
    const { leader } = this;
    const lease = this.leases.get(session);
    if (this.term !== term || leader === null || lease === undefined) return;
    if (lease.count > 0) this.commitTimed({ kind: "renewSuspects", ids: [session] }, term);
    this.world.record({ kind: "keepaliveAcknowledged", node: leader.name, term, session, number });
    this.world.after(this.latencyMs, () => {
      if (from.isReachable) from.onAcknowledged(number);
    });
  }

  private armDelay(name: string, index: number, delayMs: number): void {
    this.armTimed(delayMs, () => ({ kind: "endLockDelay", name, index }));
  }

  private armHold(session: number, of: number, token: number, maxHoldMs: number): void {
    this.armTimed(maxHoldMs, () => ({ kind: "endHold", session, of, token }));
  }

  private armTimed(ms: number, command: () => LogCommand): void {
    const { term } = this;
    const waitMs = this.world.byClock(this.leader?.name ?? "", ms * rateMargin);
    this.timers.push(
      this.world.after(waitMs, () => {
        if (this.isServing && this.term === term) this.commitTimed(command(), term);
      }),
    );
  }

  private commitTimed(command: LogCommand, term: number): void {
    this.commit({ kind: "command", command }, term);
  }
}
