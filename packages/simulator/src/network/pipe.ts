/**
 * One direction of a TCP connection: frames arrive in order or not at all, and the window closes when they are not read. Acknowledgements
 * cost nothing and are not cut: a cut stops only the bytes that go its way.
 */
import type { Cancellable, Scheduler } from "../scheduler.js";
import type { NetworkCounts } from "./counts.js";
import { sizeOf } from "./packet.js";
import type { Packet } from "./packet.js";
import type { Way } from "./way.js";

/** The kernel of the receiving end. Runs on arrival, whatever its process does. */
export interface Receiver {
  onArrival(packet: Packet, size: number): void;
  onReset(): void;
}

export interface PipeParts {
  readonly scheduler: Scheduler;
  readonly counts: NetworkCounts;
}

interface Sent {
  readonly packet: Packet;
  readonly size: number;
  /** Position of its last byte in all that was written. */
  readonly end: number;
  /** When its sender comes to it. */
  readonly fromMs: number;
  /** Its first and its last byte arrive then, or later if the way is cut. */
  beginsMs: number;
  arrivesMs: number;
}

export class Pipe {
  readonly way: Way;
  readonly #kernelBytes: number;
  readonly #scheduler: Scheduler;
  readonly #counts: NetworkCounts;
  readonly #receiver: Receiver;
  readonly #label: string;
  /** Not taken by the kernel yet. */
  #waiting: Sent[] = [];
  /** In the kernel or on the wire; the first one's arrival is scheduled, unless the pipe is held. */
  #underway: Sent[] = [];
  #next: Cancellable | null = null;
  #written = 0;
  #launched = 0;
  #consumed = 0;
  #lastArrivalMs = 0;
  #heldSinceMs: number | null = null;
  /** Nothing more can be written. */
  #isShut = false;
  #isResetUnderway = false;

  constructor(way: Way, kernelBytes: number, receiver: Receiver, parts: PipeParts) {
    this.way = way;
    this.#kernelBytes = kernelBytes;
    this.#scheduler = parts.scheduler;
    this.#counts = parts.counts;
    this.#receiver = receiver;
    this.#label = `arrive ${way.from.name}>${way.to.name}`;
    way.pipes.add(this);
  }

  /** What the kernel has no room for. */
  get bufferedBytes(): number {
    return Math.max(0, this.#written - this.#consumed - this.#kernelBytes);
  }

  /** Part of a long frame has arrived by now. */
  get isTrickling(): boolean {
    const first = this.#underway[0];
    return (
      first !== undefined && this.#heldSinceMs === null && first.beginsMs < this.#scheduler.nowMs && !this.way.isBlocked
    );
  }

  /** The sender is ahead of the scheduler by so much. */
  write(packet: Packet, aheadMs = 0): void {
    if (this.#isShut) return;
    const size = sizeOf(packet);
    this.#written += size;
    const sent: Sent = {
      packet,
      size,
      end: this.#written,
      fromMs: this.#scheduler.nowMs + aheadMs,
      beginsMs: 0,
      arrivesMs: 0,
    };
    if (packet.kind === "fin") this.#isShut = true;
    if (this.#waiting.length === 0 && this.#hasRoom) this.#launch(sent);
    else this.#waiting.push(sent);
  }

  /** The receiving process has read so many bytes. */
  consume(size: number): void {
    this.#consumed += size;
    while (this.#waiting.length > 0 && this.#hasRoom) this.#launch(this.#waiting.shift() as Sent);
  }

  /** Nobody will read what has arrived. A sender that waits for room finds out: TCP probes a closed window. */
  forgetUnread(): void {
    const underway = this.#underway.reduce((sum, { size }) => sum + size, 0);
    this.consume(this.#launched - underway - this.#consumed);
  }

  /** The sending process is gone: what the kernel has of its frames still goes out, then the end. */
  shut(): void {
    if (this.#isShut && this.#waiting.length === 0) return;
    const inKernel = this.#consumed + this.#kernelBytes;
    const kept = this.#underway.filter((sent) => sent.end <= inKernel);
    this.#counts.framesLost += this.#underway.length - kept.length + this.#waiting.length;
    const hasNewFirst = kept[0] !== this.#underway[0];
    this.#underway = kept;
    this.#waiting = [];
    this.#isShut = true;
    if (hasNewFirst) {
      this.#next?.cancel();
      this.#next = null;
      this.#heldSinceMs = null;
    }
    this.#launch({ packet: { kind: "fin" }, size: 0, end: this.#written, fromMs: 0, beginsMs: 0, arrivesMs: 0 });
  }

  /** Tells the receiver that the connection is no more. A reset is sent once: in a cut it gets lost. */
  sendReset(): void {
    const { way } = this;
    if (this.#isResetUnderway) return;
    this.#isResetUnderway = true;
    this.#counts.resets += 1;
    this.#scheduler.after(way.delayMs(), `reset ${way.from.name}>${way.to.name}`, () => {
      this.#isResetUnderway = false;
      if (way.isBlocked) this.#counts.resetsLost += 1;
      else this.#receiver.onReset();
    });
  }

  /** Nothing of it arrives any more. */
  discard(): void {
    this.#counts.framesLost += this.#underway.length + this.#waiting.length;
    this.#underway = [];
    this.#waiting = [];
    this.#next?.cancel();
    this.#next = null;
    this.#isShut = true;
    this.way.pipes.delete(this);
  }

  onHealed(): void {
    if (this.#heldSinceMs === null) return;
    const { nowMs } = this.#scheduler;
    const resumesMs = nowMs + this.way.recoveryMs(nowMs - this.#heldSinceMs);
    this.#heldSinceMs = null;
    for (const sent of this.#underway) sent.arrivesMs = Math.max(sent.arrivesMs, resumesMs);
    this.#lastArrivalMs = Math.max(this.#lastArrivalMs, resumesMs);
    this.#scheduleFirst();
  }

  /** A slow way has become faster: what is under way comes sooner, if that is sooner. */
  onEased(): void {
    if (this.#underway.length === 0) return;
    this.#lastArrivalMs = 0;
    for (const sent of this.#underway) {
      const dueMs = sent.arrivesMs;
      this.#time(sent);
      sent.arrivesMs = Math.min(dueMs, sent.arrivesMs);
      this.#lastArrivalMs = sent.arrivesMs;
    }
    if (this.#heldSinceMs !== null) return;
    this.#next?.cancel();
    this.#scheduleFirst();
  }

  get #hasRoom(): boolean {
    return this.#launched - this.#consumed < this.#kernelBytes;
  }

  #launch(sent: Sent): void {
    this.#launched = sent.end;
    this.#time(sent);
    this.#underway.push(sent);
    if (this.#heldSinceMs !== null) this.#noteHeld(1);
    else if (this.#underway.length === 1) this.#scheduleFirst();
  }

  #noteHeld(frames: number): void {
    this.#counts.framesHeld += frames;
    this.way.noteHeld(frames);
  }

  #time(sent: Sent): void {
    const startMs = Math.max(Math.max(this.#scheduler.nowMs, sent.fromMs) + this.way.delayMs(), this.#lastArrivalMs);
    sent.beginsMs = startMs;
    sent.arrivesMs = startMs + this.way.transferMs(sent.size);
    this.#lastArrivalMs = sent.arrivesMs;
  }

  #scheduleFirst(): void {
    const first = this.#underway[0];
    if (first !== undefined) this.#next = this.#scheduler.at(first.arrivesMs, this.#label, this.#onArrival);
  }

  readonly #onArrival = (): void => {
    this.#next = null;
    if (this.way.isBlocked) {
      this.#heldSinceMs = this.#scheduler.nowMs;
      this.#noteHeld(this.#underway.length);
      return;
    }
    const { packet, size } = this.#underway.shift() as Sent;
    if (packet.kind === "fin") this.way.pipes.delete(this);
    else this.#scheduleFirst();
    this.#receiver.onArrival(packet, size);
  };
}
