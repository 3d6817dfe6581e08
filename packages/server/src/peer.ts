/** All links with one peer: two lanes dialled here, two dialled there, and what their comings and goings say about its process. */
import type { Message, NodeId, Random } from "@holdfast/raft";
import type { PeerFrame, PeerHello } from "@holdfast/wire";
import type { IncomingLink } from "./incoming-link.js";
import { OutgoingLink } from "./outgoing-link.js";
import type { LossKind, OutgoingOptions, OutgoingParts } from "./outgoing-link.js";
import type { HelloRefusal } from "./peer-hello.js";
import { laneFor, lanes } from "./peer-lanes.js";
import type { Lane } from "./peer-lanes.js";
import type { Clock, Logger, Timer } from "./ports.js";

export interface PeerOwner {
  hello(to: NodeId): PeerHello;
  judge(hello: PeerHello, process: string, expected: NodeId): HelloRefusal | null;
  /** A link with this peer is open, hello and all. */
  onLink(peer: Peer, lane: Lane, direction: "out" | "in", hello: PeerHello): void;
  onRefused(peer: NodeId, refusal: HelloRefusal, hello: PeerHello | null): void;
  /** Its process has ended without a goodbye. */
  onGone(peer: NodeId): void;
}

export interface PeerOptions {
  readonly id: NodeId;
  readonly address: string;
  readonly process: string;
  readonly secret: string | null;
  readonly handshakeMs: number;
  readonly bufferedBytesMax: number;
}

export interface PeerParts extends OutgoingParts {
  readonly random: Random;
  readonly logger: Logger;
}

/** Heartbeats, votes and answers are small: a megabyte of them means that nobody reads. */
const controlBufferedBytesMax = 1024 * 1024;
/** A dial that hangs this long is begun anew when the peer turns out to be there. */
const hangingMs = 100;
/** After this many failed dials the pauses grow: a peer that comes back calls by itself, and is called back at once. */
const quickDials = 10;
/** A dying process can accept a connection for a moment before its listener closes. */
const instantDials = 5;
/** A link that is lost sooner was none: two nodes that disagree must not dial each other without a pause. */
const lastingMs = 1_000;

export class Peer {
  readonly id: NodeId;
  /** Where it is called. */
  readonly address: string;
  private readonly owner: PeerOwner;
  private readonly clock: Clock;
  private readonly random: Random;
  private readonly logger: Logger;
  private readonly outgoing: Readonly<Record<Lane, OutgoingLink>>;
  private readonly incoming = new Map<Lane, IncomingLink>();
  private readonly retries = new Map<Lane, Timer>();
  /** Dials that failed, or whose link didn't last, since the last link that did. */
  private readonly failures: Record<Lane, number> = { control: 0, data: 0 };
  private readonly openedAtMs: Record<Lane, number> = { control: 0, data: 0 };
  /** A link broke without a goodbye, and nothing has been heard since: a refused connection now means that the process is gone. */
  private isSuspect = false;
  /** Of the last hello; and of the process that was reported gone, until it is heard again. */
  private boot = 0;
  private goneBoot = -1;
  private isClosed = false;
  private isReachable = true;

  constructor(options: PeerOptions, parts: PeerParts, owner: PeerOwner) {
    this.id = options.id;
    this.address = options.address;
    this.owner = owner;
    this.clock = parts.clock;
    this.random = parts.random;
    this.logger = parts.logger;
    this.outgoing = {
      control: this.createLink("control", options, parts),
      data: this.createLink("data", options, parts),
    };
  }

  /** Its hello on the lane that this node dialled; null while that is down. */
  get dialledHello(): PeerHello | null {
    return this.outgoing.control.peerHello;
  }

  /** Its hello on the lane that it dialled itself. */
  get callerHello(): PeerHello | null {
    return this.incoming.get("control")?.peerHello ?? null;
  }

  get linkCount(): number {
    return lanes.filter((lane) => this.outgoing[lane].peerHello !== null).length + this.incoming.size;
  }

  get bufferedBytes(): number {
    let bytes = 0;
    for (const lane of lanes)
      bytes += this.outgoing[lane].bufferedBytes + (this.incoming.get(lane)?.bufferedBytes ?? 0);
    return bytes;
  }

  /** No socket of this node's dialling is left. */
  get isDown(): boolean {
    return lanes.every((lane) => this.outgoing[lane].isDown);
  }

  dialAll(): void {
    for (const lane of lanes) this.dialNow(lane);
  }

  send(messages: readonly Message[]): void {
    for (const lane of lanes) {
      const own = messages.filter((message) => laneFor(message) === lane);
      if (own.length > 0) this.outgoing[lane].send(own);
    }
  }

  sendFrame(frame: PeerFrame): void {
    this.outgoing.control.sendFrame(frame);
  }

  sweep(quietMax: number): void {
    for (const lane of lanes) {
      this.outgoing[lane].sweep(quietMax);
      this.incoming.get(lane)?.sweep(quietMax);
    }
  }

  /** A link that the peer has dialled. False: it is older than the one in use. */
  onIncoming(link: IncomingLink, hello: PeerHello): boolean {
    if (this.isClosed) return false;
    const { lane, process, dial } = link.options;
    const current = this.incoming.get(lane);
    if (current !== undefined && current.options.process === process && current.options.dial > dial) return false;
    this.incoming.set(lane, link);
    current?.supersede();
    this.noteAlive(hello);
    for (const each of lanes) {
      this.dialNow(each);
      this.outgoing[each].redialIfHanging(hangingMs);
    }
    this.owner.onLink(this, lane, "in", hello);
    return true;
  }

  isCurrent(link: IncomingLink): boolean {
    return this.incoming.get(link.options.lane) === link;
  }

  onIncomingClosed(link: IncomingLink, saidGoodbye: boolean, problem: string): void {
    if (!this.isCurrent(link)) return;
    this.incoming.delete(link.options.lane);
    if (this.isClosed) return;
    this.logger.debug({ peer: this.id, lane: link.options.lane, reason: problem }, "incoming peer link closed");
    if (saidGoodbye) this.isSuspect = false;
    else this.onBroken();
  }

  /** Says goodbye on every link and dials anew: what the two sides know of each other has changed. */
  renew(): void {
    this.closeLinks();
    this.dialAll();
  }

  close(): void {
    this.stop();
    this.closeLinks();
  }

  abandon(): void {
    this.stop();
    for (const lane of lanes) this.outgoing[lane].abandon();
  }

  private stop(): void {
    this.isClosed = true;
    for (const timer of this.retries.values()) timer.cancel();
    this.retries.clear();
  }

  private createLink(lane: Lane, options: PeerOptions, parts: PeerParts): OutgoingLink {
    const { id, address, process, secret, handshakeMs } = options;
    const bufferedBytesMax = lane === "control" ? controlBufferedBytesMax : options.bufferedBytesMax;
    const linkOptions: OutgoingOptions = { peer: id, lane, address, process, secret, handshakeMs, bufferedBytesMax };
    return new OutgoingLink(linkOptions, parts, {
      hello: () => this.owner.hello(id),
      judge: (hello, peerProcess) => this.owner.judge(hello, peerProcess, id),
      onOpen: (hello) => this.onOpen(lane, hello),
      onRefused: (refusal, hello) => this.owner.onRefused(id, refusal, hello),
      onLost: (loss, problem) => this.onLost(lane, loss, problem),
    });
  }

  private closeLinks(): void {
    for (const lane of lanes) {
      this.outgoing[lane].close();
      this.incoming.get(lane)?.close();
    }
    this.incoming.clear();
  }

  private onOpen(lane: Lane, hello: PeerHello): void {
    this.openedAtMs[lane] = this.clock.monotonicMs();
    this.noteAlive(hello);
    this.isReachable = true;
    this.logger.debug({ peer: this.id, lane }, "peer link open");
    this.owner.onLink(this, lane, "out", hello);
  }

  /** A later start than the one whose links broke proves that the earlier process is gone. */
  private noteAlive(hello: PeerHello): void {
    const hasDied = this.isSuspect && hello.boot > this.boot && this.boot > 0 && this.goneBoot !== this.boot;
    this.isSuspect = false;
    this.goneBoot = -1;
    this.boot = hello.boot;
    if (hasDied) this.owner.onGone(this.id);
  }

  private onLost(lane: Lane, loss: LossKind, problem: string): void {
    if (this.isClosed) return;
    this.logger.debug({ peer: this.id, lane, loss, reason: problem }, "peer link lost");
    switch (loss) {
      case "broken":
        this.onOutgoingBroken(lane, problem);
        return;
      case "connectionRefused":
        this.onConnectionRefused(lane, problem);
        return;
      case "dialFailed":
        this.failures[lane] += 1;
        this.retrySoon(lane, problem);
        return;
      case "helloRefused":
        this.retryIn(lane, 1_000 + this.random.integer(1_000));
        return;
      case "goodbye":
        this.isSuspect = false;
        this.retryIn(lane, this.random.integer(20));
        return;
      default:
        assertNever(loss);
    }
  }

  /** Whatever broke it, a fresh connection tells a dead process (refused) from a lost link (accepted) and from silence (neither). */
  private onBroken(): void {
    this.isSuspect = true;
    for (const lane of lanes) if (this.failures[lane] <= instantDials) this.dialNow(lane);
  }

  private onOutgoingBroken(lane: Lane, problem: string): void {
    const hasLasted = this.clock.monotonicMs() - this.openedAtMs[lane] >= lastingMs;
    this.failures[lane] = hasLasted ? 0 : this.failures[lane] + 1;
    this.onBroken();
    if (this.outgoing[lane].isDown) this.retrySoon(lane, problem);
  }

  private retrySoon(lane: Lane, problem: string): void {
    if (this.isSuspect && this.failures[lane] <= instantDials) this.retryIn(lane, this.failures[lane]);
    else this.retryLater(lane, problem);
  }

  private onConnectionRefused(lane: Lane, problem: string): void {
    this.failures[lane] += 1;
    if (this.isSuspect && this.goneBoot !== this.boot) {
      this.isSuspect = false;
      this.goneBoot = this.boot;
      this.owner.onGone(this.id);
    }
    this.retryLater(lane, problem);
  }

  private retryLater(lane: Lane, problem: string): void {
    if (this.isReachable) {
      this.isReachable = false;
      this.logger.warn({ peer: this.id, reason: problem }, `${this.id} can't be reached`);
    }
    const isQuick = this.failures[lane] <= quickDials;
    this.retryIn(lane, isQuick ? 20 + this.random.integer(181) : 500 + this.random.integer(501));
  }

  private retryIn(lane: Lane, delayMs: number): void {
    this.retries.get(lane)?.cancel();
    this.retries.set(
      lane,
      this.clock.setTimer(delayMs, () => {
        this.retries.delete(lane);
        this.outgoing[lane].dial();
      }),
    );
  }

  private dialNow(lane: Lane): void {
    if (this.isClosed || !this.outgoing[lane].isDown) return;
    this.retries.get(lane)?.cancel();
    this.retries.delete(lane);
    this.outgoing[lane].dial();
  }
}

function assertNever(value: never): never {
  throw new Error(`unexpected loss ${String(value)}`);
}
