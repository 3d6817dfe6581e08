/**
 * One direction of one connection. While its way is cut the bytes wait, as TCP's do for their repetition, and the far end isn't told of
 * anything: not of an end, not of a reset. When it is healed they come, late, in order.
 */
import type { Socket } from "node:net";
import type { Sender, Way } from "./way.js";

/** What a router's queue holds before the sender is slowed down. */
const queuedBytesMax = 65_536;

interface Piece {
  readonly bytes: Buffer;
  readonly dueMs: number;
}

export class Pipe implements Sender {
  private readonly source: Socket;
  private readonly sink: Socket;
  private readonly way: Way;
  private readonly queue: Piece[] = [];
  private queuedBytes = 0;
  private lastDueMs = 0;
  private isSourceOver: "no" | "ended" | "closed" = "no";
  private isSinkFull = false;
  private timer: NodeJS.Timeout | null = null;
  private readonly stopListening: () => void;

  constructor(source: Socket, sink: Socket, way: Way) {
    this.source = source;
    this.sink = sink;
    this.way = way;
    this.stopListening = way.onChange(() => this.pump());
    source.on("data", (bytes) => this.onData(bytes));
    source.on("end", () => this.onOver("ended"));
    source.on("error", () => undefined);
    source.on("close", () => this.onOver("closed"));
    sink.on("drain", () => {
      this.isSinkFull = false;
      this.pump();
    });
    sink.on("close", () => this.onSinkClosed());
    this.pump();
  }

  get hasPieces(): boolean {
    return this.queue.length > 0 && !this.isSinkFull;
  }

  sendPiece(bytesMax: number): number {
    const first = this.queue[0];
    if (first === undefined || this.sink.destroyed) return 0;
    const bytes = first.bytes.length > bytesMax ? first.bytes.subarray(0, bytesMax) : first.bytes;
    if (bytes === first.bytes) this.queue.shift();
    else this.queue[0] = { bytes: first.bytes.subarray(bytesMax), dueMs: first.dueMs };
    this.queuedBytes -= bytes.length;
    this.write(bytes);
    if (!this.hasPieces) this.pump();
    return bytes.length;
  }

  private onData(bytes: Buffer): void {
    const delayMs = this.way.drawDelayMs();
    if (delayMs === 0 && this.queue.length === 0 && !this.way.isCut && !this.way.isSlow && !this.isSinkFull) {
      this.write(bytes);
    } else {
      // A lost segment holds up those behind it: the order stays.
      this.lastDueMs = Math.max(this.lastDueMs, performance.now() + delayMs);
      this.queue.push({ bytes, dueMs: this.lastDueMs });
      this.queuedBytes += bytes.length;
    }
    this.pump();
  }

  private write(bytes: Buffer): void {
    // Half-closed: what comes now is lost, as on a socket whose reader has shut down.
    if (this.sink.destroyed || this.sink.writableEnded) return;
    this.way.bytesPassed += bytes.length;
    if (!this.sink.write(bytes)) this.isSinkFull = true;
  }

  private pump(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    if (this.sink.destroyed) return;
    if (!this.way.isCut) this.sendDue();
    const isFull = this.way.isCut || this.isSinkFull || this.queuedBytes > queuedBytesMax;
    if (isFull) this.source.pause();
    else if (this.source.isPaused() || this.source.readableFlowing === null) this.source.resume();
    this.maybeEnd();
  }

  private sendDue(): void {
    for (;;) {
      const first = this.queue[0];
      if (first === undefined || this.isSinkFull) return;
      const waitMs = first.dueMs - performance.now();
      if (waitMs > 0) {
        this.timer = setTimeout(() => this.pump(), waitMs);
        return;
      }
      if (this.way.isSlow) {
        this.way.wait(this);
        return;
      }
      this.queue.shift();
      this.queuedBytes -= first.bytes.length;
      this.write(first.bytes);
    }
  }

  private onOver(how: "ended" | "closed"): void {
    if (this.isSourceOver !== "closed") this.isSourceOver = how;
    this.pump();
  }

  /** The end of the source comes through when the bytes before it have, and the way is whole. */
  private maybeEnd(): void {
    if (this.way.isCut || this.isSourceOver === "no") return;
    if (this.isSourceOver === "ended") {
      if (this.queue.length === 0 && !this.sink.writableEnded) this.sink.end();
    } else if (this.queue.length === 0 || this.isSinkFull) this.sink.destroy();
  }

  private onSinkClosed(): void {
    this.stopListening();
    if (this.timer !== null) clearTimeout(this.timer);
    this.queue.length = 0;
    this.queuedBytes = 0;
  }
}
