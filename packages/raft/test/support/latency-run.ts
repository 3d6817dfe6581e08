/** Cores with message latency and disk latency in virtual time: how long a failover takes. */
import { Raft } from "../../src/index.js";
import type { NodeId, Outbound, Output } from "../../src/index.js";
import { firstBase } from "./solo.js";
import { generousLimits } from "./cluster.js";
import type { TimelessEvent } from "./cluster.js";
import { bytesOf, configurationOf, testCodec } from "./codec.js";
import { SeededRandom } from "./random.js";

export interface Latencies {
  readonly nodes: number;
  /** Mean time of a message, and of a synced write; real ones are drawn from half to one and a half of it. */
  readonly messageMs: number;
  readonly writeMs: number;
  /** Within this time after a process has died, each peer learns that its sockets are closed. */
  readonly noticeMs: number;
}

interface Host {
  readonly id: NodeId;
  readonly raft: Raft;
  readonly waiting: Output[];
  isUp: boolean;
  isWriting: boolean;
  /** The peer whose links are known to be closed: nothing of it arrives after that. */
  gone: NodeId | null;
}

export class LatencyRun {
  readonly #random: SeededRandom;
  readonly #latencies: Latencies;
  readonly #hosts: Host[];
  readonly #due: { readonly atMs: number; readonly run: () => void }[] = [];
  #nowMs = 1_000;

  constructor(latencies: Latencies, seed: number) {
    this.#latencies = latencies;
    this.#random = new SeededRandom(seed);
    const ids = Array.from({ length: latencies.nodes }, (_, at) => `n${at + 1}`);
    const base = { ...firstBase, configuration: configurationOf(ids) };
    const timing = { electionTimeoutMsMin: 500, heartbeatMs: 100, diskStallMs: 1_000, limits: generousLimits };
    const hardState = { term: base.position.term, votedFor: null };
    this.#hosts = ids.map((id) => {
      const raft = new Raft(
        { id, ...timing },
        { random: this.#random, codec: testCodec },
        { hardState, base, entries: [] },
      );
      return { id, raft, waiting: [], isUp: true, isWriting: false, gone: null };
    });
  }

  /** From the death of a leader under load to the first commit of its successor, in ms. */
  failoverMs(): number {
    this.#runUntil(10_000, () => this.#servingLeader() !== null);
    this.#runUntil(1_000 + this.#random.integer(100));
    const leader = this.#servingLeader();
    if (leader === null) return Number.POSITIVE_INFINITY;
    const proposal = { id: 1, payload: bytesOf("x"), reserved: false, decidedInTerm: null };
    this.#step(leader, { kind: "propose", proposal });
    this.#runUntil(this.#random.integer(5));
    leader.isUp = false;
    const diedMs = this.#nowMs;
    for (const host of this.#hosts) {
      if (host === leader) continue;
      this.#after(1 + this.#random.integer(this.#latencies.noticeMs), () => {
        host.gone = leader.id;
        this.#step(host, { kind: "peerGone", peer: leader.id });
      });
    }
    this.#runUntil(10_000, () => this.#servingLeader() !== null);
    return this.#nowMs - diedMs;
  }

  /** A leader that has committed an entry of its own term. */
  #servingLeader(): Host | null {
    const serves = ({ isUp, raft }: Host): boolean =>
      isUp && raft.role === "leader" && raft.termAt(raft.commitIndex) === raft.term;
    return this.#hosts.find(serves) ?? null;
  }

  #step(host: Host, event: TimelessEvent): void {
    if (!host.isUp) return;
    host.raft.step({ ...event, nowMs: this.#nowMs });
    for (let output = host.raft.takeOutput(); output !== null; output = host.raft.takeOutput()) {
      this.#send(host, output.send);
      host.waiting.push(output);
    }
    this.#write(host);
  }

  /** One write in flight; what queues meanwhile shares the next. */
  #write(host: Host): void {
    if (host.isWriting || host.waiting.length === 0) return;
    const batch = host.waiting.splice(0);
    const hasWrite = batch.some(
      ({ hardState, entries, truncateFrom }) => hardState ?? truncateFrom ?? entries[0] ?? null,
    );
    host.isWriting = true;
    this.#after(hasWrite ? this.#drawn(this.#latencies.writeMs) : 0, () => {
      host.isWriting = false;
      if (!host.isUp) return;
      for (const output of batch) this.#send(host, output.sendAfterPersist);
      this.#step(host, { kind: "persisted", number: batch.at(-1)?.number ?? 0 });
    });
  }

  #send(from: Host, messages: readonly Outbound[]): void {
    for (const { to, message } of messages) {
      const host = this.#hosts.find(({ id }) => id === to);
      if (host === undefined) continue;
      this.#after(this.#drawn(this.#latencies.messageMs), () => {
        if (host.gone !== from.id) this.#step(host, { kind: "received", from: from.id, message });
      });
    }
  }

  #drawn(meanMs: number): number {
    return meanMs * (0.5 + this.#random.integer(1_000) / 1_000);
  }

  #after(ms: number, run: () => void): void {
    const atMs = this.#nowMs + ms;
    const later = this.#due.findIndex((each) => each.atMs > atMs);
    this.#due.splice(later === -1 ? this.#due.length : later, 0, { atMs, run });
  }

  #runUntil(withinMs: number, isDone: () => boolean = () => false): void {
    const untilMs = this.#nowMs + withinMs;
    while (!isDone()) {
      const ticked = this.#hosts.filter(({ isUp }) => isUp).map((host) => ({ host, atMs: host.raft.nextDeadlineMs() }));
      const [tick] = ticked.toSorted((a, b) => a.atMs - b.atMs);
      const [due] = this.#due;
      const isTick = tick !== undefined && tick.atMs < (due?.atMs ?? Number.POSITIVE_INFINITY);
      const atMs = isTick ? tick.atMs : (due?.atMs ?? Number.POSITIVE_INFINITY);
      this.#nowMs = Math.min(Math.max(atMs, this.#nowMs), untilMs);
      if (atMs > untilMs) return;
      if (isTick) this.#step(tick.host, { kind: "tick" });
      else this.#due.shift()?.run();
    }
  }
}
