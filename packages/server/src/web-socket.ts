/** What every websocket of ours needs, on either side (the rules for ws are measured: each stands where it is kept). */
import type { Socket } from "node:net";
import type { ClientOptions, ServerOptions, WebSocket } from "ws";
import type { Lookup } from "./cached-lookup.js";
import type { Clock, Timer } from "./ports.js";
import type { Attach, FrameSocket, SocketEvents } from "./transport.js";

/** Options that ws has and its types lack. */
export interface WsLimits {
  /** Pieces of one message: a flood of tiny fragments is cut off here. */
  readonly maxFragments: number;
  readonly maxBufferedChunks: number;
  /** Milliseconds that a close waits for the other side; ws holds a timer for it that keeps the process alive. */
  readonly closeTimeout: number;
  /** Answers to pings. Off between peers: both ends ping, and any byte is a sign of life. */
  readonly autoPong: boolean;
}

export type WsServerOptions = ServerOptions & WsLimits;
/** `lookup` goes through to net.connect. */
export type WsClientOptions = ClientOptions & WsLimits & { readonly lookup: Lookup };

export const closeTimeoutMs = 1_000;
/** An orderly close gets so long; then the socket is torn down. */
const closeGraceMs = 500;

/**
 * An open websocket. Sends are gated on OPEN (a send while connecting throws, after a close it vanishes without a word), always with
 * a callback; errors are heard from the first tick on; a close that hangs is cut short.
 */
class GuardedSocket implements FrameSocket {
  private readonly socket: WebSocket;
  private readonly raw: Socket;
  private readonly clock: Clock;
  private graceTimer: Timer | null = null;
  private problem: string | null = null;
  private bytesSeen: number;
  private quietSweeps = 0;
  private hasSent = false;
  private isOver = false;
  private isListening = true;
  private isPaused = false;

  /** `raw` is the TCP socket below: its count of bytes read is the only sign of life that a half-read message gives. */
  constructor(socket: WebSocket, raw: Socket, clock: Clock, events: SocketEvents) {
    this.socket = socket;
    this.raw = raw;
    this.clock = clock;
    this.bytesSeen = raw.bytesRead;
    socket.on("error", (error) => {
      this.problem ??= error.message;
    });
    socket.on("message", (data, isBinary) => {
      if (!this.isListening) return;
      if (!isBinary) return this.close(1003, "binary messages only");
      events.onMessage(data as Buffer);
    });
    socket.on("close", (code) => {
      this.graceTimer?.cancel();
      this.isOver = true;
      this.isListening = false;
      events.onClosed(this.problem ?? (code === 1006 ? "closed without a closing handshake" : null));
    });
  }

  get isOpen(): boolean {
    return !this.isOver && this.socket.readyState === this.socket.OPEN;
  }

  get bufferedBytes(): number {
    return this.socket.bufferedAmount;
  }

  send(bytes: Uint8Array): boolean {
    if (!this.isOpen) return false;
    this.hasSent = true;
    this.socket.send(bytes, ignoreSendError);
    return true;
  }

  ping(): void {
    if (this.isOpen) this.socket.ping(undefined, undefined, ignoreSendError);
  }

  pingIfIdle(): void {
    if (!this.hasSent && this.socket.bufferedAmount === 0) this.ping();
    this.hasSent = false;
  }

  /** The other side is held back by TCP. */
  pause(): void {
    if (this.isPaused || !this.isOpen) return;
    this.isPaused = true;
    this.socket.pause();
  }

  resume(): void {
    if (!this.isPaused) return;
    this.isPaused = false;
    this.socket.resume();
  }

  /** Counted, not timed: a stall of ours is one sweep. */
  sweep(): number {
    const { bytesRead } = this.raw;
    // Whom we don't listen to is not quiet.
    this.quietSweeps = !this.isPaused && bytesRead === this.bytesSeen ? this.quietSweeps + 1 : 0;
    this.bytesSeen = bytesRead;
    return this.quietSweeps;
  }

  close(code: number, reason: string, isListening = false): void {
    if (!this.isOpen) return;
    this.isOver = true;
    this.isListening = isListening;
    this.problem ??= reason;
    this.socket.close(code, reason);
    this.graceTimer = this.clock.setTimer(closeGraceMs, () => this.socket.terminate());
  }

  terminate(problem: string): void {
    this.problem ??= problem;
    this.isOver = true;
    this.isListening = false;
    this.socket.terminate();
  }
}

export function attachTo(socket: WebSocket, raw: Socket, clock: Clock): Attach {
  return (events) => new GuardedSocket(socket, raw, clock, events);
}

/** The close event follows and says it; a send error by itself is no news. */
function ignoreSendError(): void {}
