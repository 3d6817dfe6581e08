/** The way from one machine to another: what is wrong with it now, and how long a frame takes. Several faults may overlap. */
import type { Random } from "../random.js";
import type { NetworkCounts } from "./counts.js";
import type { Pipe } from "./pipe.js";

export interface Latency {
  readonly latencyMsMin: number;
  readonly latencyMsMax: number;
  /** TCP's first wait before it sends again; it doubles, up to the greatest. */
  readonly retransmitMs: number;
  readonly retransmitMsMax: number;
}

export interface Slowness {
  readonly delayMs: number;
  readonly jitterMs: number;
}

export interface WayParts {
  readonly random: Random;
  readonly counts: NetworkCounts;
}

/** What doesn't happen in TCP, but may in an older socket that outlives its successor: frames come once more, on the socket of then. */
export interface Repeats {
  readonly withinMs: number;
  /** The probability, by what is in it. */
  readonly chanceFor: (bytes: Uint8Array) => number;
}

/** A machine; frames from and to one that is off get nowhere. */
export interface Machine {
  readonly name: string;
  readonly isOff: boolean;
}

/** Takes a fault away again; more than once does no harm. */
export type Undo = () => void;

export class Way {
  readonly from: Machine;
  readonly to: Machine;
  readonly pipes: Set<Pipe> = new Set();
  /** Frames that had to wait here, for a cut or for a machine that is off. */
  framesCutOff = 0;
  framesAsleep = 0;
  readonly #latency: Latency;
  readonly #random: Random;
  readonly #counts: NetworkCounts;
  #cuts = 0;
  readonly #slow = new Set<Slowness>();
  readonly #rates = new Set<{ readonly bytesPerSecond: number }>();
  readonly #losses = new Set<{ readonly probability: number }>();
  readonly #repeats = new Set<Repeats>();
  #delayMs = 0;
  #jitterMs = 0;
  #bytesPerSecond = Number.POSITIVE_INFINITY;
  #lossProbability = 0;

  constructor(ends: { from: Machine; to: Machine }, latency: Latency, parts: WayParts) {
    this.from = ends.from;
    this.to = ends.to;
    this.#latency = latency;
    this.#random = parts.random;
    this.#counts = parts.counts;
  }

  get isBlocked(): boolean {
    return this.#cuts > 0 || this.from.isOff || this.to.isOff;
  }

  noteHeld(frames: number): void {
    if (this.#cuts > 0) this.framesCutOff += frames;
    if (this.from.isOff || this.to.isOff) this.framesAsleep += frames;
  }

  cut(): Undo {
    this.#cuts += 1;
    return once(() => {
      this.#cuts -= 1;
      this.noteHealed();
    });
  }

  slow(slowness: Slowness): Undo {
    return this.#add(this.#slow, slowness);
  }

  throttle(bytesPerSecond: number): Undo {
    return this.#add(this.#rates, { bytesPerSecond });
  }

  lossy(probability: number): Undo {
    return this.#add(this.#losses, { probability });
  }

  repeating(repeats: Repeats): Undo {
    return this.#add(this.#repeats, repeats);
  }

  /** After how long a frame that has just been read comes again; null: it doesn't. */
  repeatAfterMs(bytes: Uint8Array): number | null {
    for (const { withinMs, chanceFor } of this.#repeats) {
      if (this.#random.chance(chanceFor(bytes))) return this.#random.logUniform(1, withinMs);
    }
    return null;
  }

  /** Something that blocked it is gone, perhaps not the last. */
  noteHealed(): void {
    if (this.isBlocked) return;
    for (const pipe of this.pipes) pipe.onHealed();
  }

  /** The machine that sends on it is dead. */
  discardAll(): void {
    for (const pipe of [...this.pipes]) pipe.discard();
  }

  /** From the sending of a frame's first byte to its arrival. */
  delayMs(): number {
    const { latencyMsMin, latencyMsMax, retransmitMs, retransmitMsMax } = this.#latency;
    let delayMs = latencyMsMin + this.#random.fraction() * (latencyMsMax - latencyMsMin);
    if (this.#slow.size > 0) {
      delayMs += this.#delayMs + this.#random.fraction() * this.#jitterMs;
      this.#counts.slowedFrames += 1;
    }
    if (this.#lossProbability > 0) {
      for (let waitMs = retransmitMs; waitMs <= retransmitMsMax; waitMs *= 2) {
        if (!this.#random.chance(this.#lossProbability)) break;
        delayMs += waitMs;
        this.#counts.retransmissions += 1;
      }
    }
    return delayMs;
  }

  /** How long the bytes take to leave. Each socket has the rate for itself, as if the link shared itself out fairly. */
  transferMs(bytes: number): number {
    if (this.#rates.size === 0) return 0;
    this.#counts.throttledBytes += bytes;
    return (bytes / this.#bytesPerSecond) * 1_000;
  }

  /** How long TCP takes to notice that it gets through again: its waits double, so the longer it was cut off the longer. */
  recoveryMs(cutMs: number): number {
    const { retransmitMs, retransmitMsMax } = this.#latency;
    this.#counts.retransmissions += 1;
    return this.#random.fraction() * Math.min(Math.max(cutMs, retransmitMs), retransmitMsMax);
  }

  #add<T>(faults: Set<T>, fault: T): Undo {
    // The same object may come twice.
    const own = { ...fault };
    faults.add(own);
    this.#sum();
    return once(() => {
      faults.delete(own);
      this.#sum();
      for (const pipe of this.pipes) pipe.onEased();
    });
  }

  #sum(): void {
    this.#delayMs = 0;
    this.#jitterMs = 0;
    for (const { delayMs, jitterMs } of this.#slow) {
      this.#delayMs += delayMs;
      this.#jitterMs += jitterMs;
    }
    this.#bytesPerSecond = Number.POSITIVE_INFINITY;
    for (const { bytesPerSecond } of this.#rates) this.#bytesPerSecond = Math.min(this.#bytesPerSecond, bytesPerSecond);
    let arrives = 1;
    for (const { probability } of this.#losses) arrives *= 1 - probability;
    this.#lossProbability = 1 - arrives;
  }
}

function once(undo: () => void): Undo {
  let isDone = false;
  return () => {
    if (isDone) return;
    isDone = true;
    undo();
  };
}
