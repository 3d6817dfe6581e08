/** One client's connection: what a turn sends leaves in one frame, and a reader that stops is cut off. */
import { decodeClientFrame, encodeServerFrames, WireError } from "@holdfast/wire";
import type { ClientMessage, ServerMessage } from "@holdfast/wire";
import type { RejectionReason } from "./metrics.js";
import type { ClientConnection, ClientFrame, Clock, Logger, Timer } from "./ports.js";
import type { Attach, FrameSocket } from "./transport.js";

export interface ClientSocketOptions {
  readonly id: number;
  readonly remote: string;
  /** Time to say hello. */
  readonly helloMs: number;
  readonly bufferedBytesSlow: number;
  readonly bufferedBytesMax: number;
}

export interface ClientSocketOwner {
  onFrame(connection: ClientSocket, frame: ClientFrame): void;
  onClosed(connection: ClientSocket): void;
  onRejected(reason: RejectionReason): void;
  /** The connection has messages to flush at the end of this turn. */
  onDirty(connection: ClientSocket): void;
}

/** What a frame takes beside its content, while it waits: an empty one is not free. */
const frameBytes = 256;

export class ClientSocket implements ClientConnection {
  readonly id: number;
  readonly remote: string;
  private readonly options: ClientSocketOptions;
  private readonly owner: ClientSocketOwner;
  private readonly logger: Logger;
  private readonly socket: FrameSocket;
  private readonly helloTimer: Timer;
  private outbox: ServerMessage[] = [];
  private isSlow = false;
  /** This side has ended it. */
  private isCut = false;

  constructor(
    options: ClientSocketOptions,
    parts: { clock: Clock; logger: Logger },
    attach: Attach,
    owner: ClientSocketOwner,
  ) {
    this.id = options.id;
    this.remote = options.remote;
    this.options = options;
    this.owner = owner;
    this.logger = parts.logger;
    this.socket = attach({
      onMessage: (bytes) =>
        owner.onFrame(this, { bytes: bytes.length + frameBytes, messages: () => this.decode(bytes) }),
      onClosed: (problem) => {
        this.helloTimer.cancel();
        this.logger.debug({ remote: this.remote, connection: this.id, reason: problem }, "client connection closed");
        owner.onClosed(this);
      },
    });
    this.helloTimer = parts.clock.setTimer(options.helloMs, () => {
      owner.onRejected("hello_timeout");
      this.close(1008, "no hello came in time");
    });
  }

  get bufferedBytes(): number {
    return this.socket.bufferedBytes;
  }

  send(message: ServerMessage): void {
    if (!this.socket.isOpen) return;
    this.outbox.push(message);
    if (this.outbox.length === 1) this.owner.onDirty(this);
  }

  pause(): void {
    this.socket.pause();
  }

  resume(): void {
    this.socket.resume();
  }

  close(code: number, reason: string): void {
    this.isCut = true;
    this.flush();
    this.socket.close(code, reason);
  }

  terminate(problem: string): void {
    this.isCut = true;
    this.socket.terminate(problem);
  }

  /** Sends what the turn has left here: as few frames as the limits allow, usually one. */
  flush(): void {
    if (this.outbox.length === 0) return;
    const messages = this.outbox;
    this.outbox = [];
    if (!this.socket.isOpen) return;
    for (const bytes of this.encode(messages)) {
      const buffered = this.socket.bufferedBytes + bytes.length;
      if (buffered > this.options.bufferedBytesMax) {
        this.owner.onRejected("slow_reader");
        this.logger.warn(
          { remote: this.remote, connection: this.id, bytes: buffered },
          "client reads too slowly: cut off",
        );
        this.terminate("reads too slowly");
        return;
      }
      this.socket.send(bytes);
      this.noteSlow(buffered);
    }
  }

  sweep(quietMax: number): void {
    const quiet = this.socket.sweep();
    if (quiet >= quietMax) this.terminate("nothing was heard from it");
    else if (quiet > 0) this.socket.ping();
  }

  /** An answer that fits in no frame is that client's trouble (it holds too much), not the node's end. */
  private encode(messages: readonly ServerMessage[]): readonly Uint8Array[] {
    try {
      return encodeServerFrames(messages);
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      this.logger.error(
        { remote: this.remote, connection: this.id, reason: error.message },
        "an answer can't be encoded",
      );
      this.socket.close(1011, error.code);
      return [];
    }
  }

  private noteSlow(buffered: number): void {
    const isSlow = buffered > this.options.bufferedBytesSlow;
    if (isSlow && !this.isSlow) {
      this.logger.warn({ remote: this.remote, connection: this.id, bytes: buffered }, "client reads slowly");
    }
    this.isSlow = isSlow;
  }

  /** Decoded when its turn comes: a flood shall not keep the loop from its other sockets. What came before the client's own end counts. */
  private decode(bytes: Uint8Array): readonly ClientMessage[] {
    if (this.isCut) return [];
    try {
      const messages = decodeClientFrame(bytes);
      if (messages[0]?.kind === "hello") this.helloTimer.cancel();
      return messages;
    } catch (error) {
      // The code is one of ours; nothing of the frame goes back or into the log.
      const code = error instanceof WireError ? error.code : "undecodable";
      this.owner.onRejected("bad_frame");
      this.logger.warn(
        { remote: this.remote, connection: this.id, reason: code },
        "client sent a frame that can't be decoded",
      );
      this.close(1007, code);
      return [];
    }
  }
}
