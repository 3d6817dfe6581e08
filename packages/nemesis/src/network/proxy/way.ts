/** One way of bytes between two parties, shared by all connections that use it: whether it is cut, how it is shaped, what has passed. */
import type { Shape } from "../network.js";

/** As an Ethernet frame carries it: connections on a slow way take turns by pieces of this size. */
const pieceBytesMax = 1_460;
/** Linux's least wait before it sends a lost segment again; a segment is drawn between this and twice this. */
const retransmissionMsMin = 200;

/** What waits for its turn on a slow way. */
export interface Sender {
  readonly hasPieces: boolean;
  /** Sends at most so many bytes, and says how many. */
  sendPiece(bytesMax: number): number;
}

export class Way {
  bytesPassed = 0;
  private isCutNow = false;
  private shapeNow: Shape | null = null;
  /** Told of each change. */
  private readonly listeners = new Set<() => void>();
  private readonly waiting: Sender[] = [];
  private timer: NodeJS.Timeout | null = null;
  private readonly fraction: () => number;

  constructor(fraction: () => number) {
    this.fraction = fraction;
  }

  get isCut(): boolean {
    return this.isCutNow;
  }

  get isSlow(): boolean {
    return this.shapeNow?.bytesPerSecond !== undefined;
  }

  cut(): void {
    this.isCutNow = true;
    this.tell();
  }

  heal(): void {
    this.isCutNow = false;
    this.tell();
    this.arm();
  }

  shape(shape: Shape | null): void {
    this.shapeNow = shape;
    this.tell();
    this.arm();
  }

  onChange(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }

  /** How long a piece that comes now is under way. */
  drawDelayMs(): number {
    const { delayMs = 0, jitterMs = 0, lossFraction = 0 } = this.shapeNow ?? {};
    let ms = delayMs + jitterMs * this.fraction();
    if (lossFraction > 0 && this.fraction() < lossFraction) ms += retransmissionMsMin * (1 + this.fraction());
    return ms;
  }

  /** On a slow way: it gets its turn. */
  wait(sender: Sender): void {
    if (!this.waiting.includes(sender)) this.waiting.push(sender);
    this.arm();
  }

  private tell(): void {
    for (const listener of this.listeners) listener();
  }

  private arm(): void {
    if (this.timer !== null || this.waiting.length === 0 || this.isCutNow) return;
    this.sendNext();
  }

  /** One piece of the next connection, then as long a pause as the piece takes. */
  private sendNext(): void {
    this.timer = null;
    if (this.isCutNow) return;
    const sender = this.waiting.shift();
    if (sender === undefined) return;
    const bytesPerSecond = this.shapeNow?.bytesPerSecond;
    const bytes = sender.sendPiece(bytesPerSecond === undefined ? Number.POSITIVE_INFINITY : pieceBytesMax);
    if (sender.hasPieces) this.waiting.push(sender);
    const ms = bytesPerSecond === undefined ? 0 : (bytes / bytesPerSecond) * 1_000;
    this.timer = setTimeout(() => this.sendNext(), ms);
  }
}

/** All ways, by their ends. */
export class Ways {
  private readonly known = new Map<string, Way>();
  private readonly fraction: () => number;

  constructor(fraction: () => number = Math.random) {
    this.fraction = fraction;
  }

  of(from: string, to: string): Way {
    const key = `${from} ${to}`;
    let way = this.known.get(key);
    if (way === undefined) {
      way = new Way(this.fraction);
      this.known.set(key, way);
    }
    return way;
  }
}
