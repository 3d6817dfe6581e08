/**
 * One end of a connection, as a process has it: a websocket with the server's rules for its sockets (see the server's web-socket.ts), over
 * a kernel that goes on when the process is paused or gone.
 */
import type { FrameSocket } from "@holdfast/server/parts";
import type { SimulatedProcess } from "../process.js";
import type { Cancellable } from "../scheduler.js";
import type { Connection, Side } from "./connection.js";
import type { Packet } from "./packet.js";
import type { Pipe, Receiver } from "./pipe.js";

/** An orderly close gets so long; then the socket is torn down. */
const closeGraceMs = 500;
/** Time for a caller to send its request's head. */
const headMs = 5_000;
/** So long waits who was told to close, as ws does. */
const closeTimeoutMs = 1_000;
/** Frames that a reader has taken from the kernel already when it stops reading. */
const readAheadMax = 4;

export interface EndEvents {
  onMessage(bytes: Uint8Array): void;
  onPong?(): void;
  /** `code`: the websocket's close code, 1006 when there was no closing handshake. */
  onClosed(problem: string | null, code: number): void;
}

/** The steps of a connection's opening, in the process of this end. */
export interface Opening {
  onStep(packet: Packet): void;
  /** Reset or closed in mid-opening. */
  onBroken(kind: "connectionRefused" | "dialFailed", problem: string): void;
}

export class Endpoint implements FrameSocket, Receiver {
  readonly side: Side;
  readonly connection: Connection;
  /** Null before the call has reached a listener. */
  #process: SimulatedProcess | null;
  #out: Pipe | null = null;
  #in: Pipe | null = null;
  #state: "opening" | "open" | "closing" | "gone" = "opening";
  #opening: Opening | null;
  #events: EndEvents | null = null;
  #hasEvents = false;
  #beforeSend: (() => void) | null = null;
  /** In the kernel, for the process to read. */
  #unread: { readonly packet: Packet | null; readonly size: number }[] = [];
  #bytesRead = 0;
  #bytesSeen = 0;
  #quietSweeps = 0;
  #readAhead = 0;
  #isPaused = false;
  #isListening = true;
  #hasSent = false;
  #hasReadData = false;
  #problem: string | null = null;
  #closeCode = 1006;
  #timer: Cancellable | null = null;

  constructor(connection: Connection, side: Side, process: SimulatedProcess | null, opening: Opening | null) {
    this.connection = connection;
    this.side = side;
    this.#process = process;
    this.#opening = opening;
  }

  get process(): SimulatedProcess | null {
    return this.#process;
  }

  get isAttached(): boolean {
    return this.#hasEvents;
  }

  get isGone(): boolean {
    return this.#state === "gone";
  }

  get isOpen(): boolean {
    return this.#state === "open";
  }

  get bufferedBytes(): number {
    return this.isGone ? 0 : this.#outPipe.bufferedBytes;
  }

  connect(out: Pipe, incoming: Pipe): void {
    this.#out = out;
    this.#in = incoming;
  }

  /** The listening process takes the call. */
  adopt(process: SimulatedProcess, opening: Opening): void {
    this.#process = process;
    this.#opening = opening;
    this.#timer = process.setTimer(headMs, () => this.hangUp());
  }

  /** The opening is done. */
  open(): void {
    this.#state = "open";
    this.#timer?.cancel();
    this.#timer = null;
    this.#opening = null;
  }

  /** `beforeSend` runs before each frame that is sent, and may end it all. */
  attach(events: EndEvents, beforeSend: (() => void) | null = null): this {
    if (this.#hasEvents) throw new Error("a socket can be taken over once");
    this.#hasEvents = true;
    this.#bytesSeen = this.#bytesRead;
    this.#events = events;
    this.#beforeSend = beforeSend;
    return this;
  }

  /** A step of the opening. */
  write(packet: Packet): void {
    this.#write(packet);
  }

  send(bytes: Uint8Array): boolean {
    if (this.#state === "open") this.#beforeSend?.();
    if (!this.isOpen) return false;
    this.#hasSent = true;
    this.connection.noteFrame(this.side, bytes, "sent");
    this.#write({ kind: "data", bytes });
    return true;
  }

  ping(): void {
    if (this.#state === "open") this.#write(ping);
  }

  pingIfIdle(): void {
    if (!this.#hasSent && this.bufferedBytes === 0) this.ping();
    this.#hasSent = false;
  }

  pause(): void {
    if (this.#isPaused || this.#state !== "open") return;
    this.#isPaused = true;
    this.connection.counts.readsPaused += 1;
    if (this.#unread.length > 0) this.#readAhead = this.connection.random.integer(readAheadMax + 1);
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.connection.counts.readsResumed += 1;
    this.#readAhead = 0;
    if (this.#unread.length > 0) this.#process?.deliverIn(0, "read", () => this.#readAll());
  }

  sweep(): number {
    const isQuiet = !this.#isPaused && this.#bytesRead === this.#bytesSeen && !this.#inPipe.isTrickling;
    this.#quietSweeps = isQuiet ? this.#quietSweeps + 1 : 0;
    this.#bytesSeen = this.#bytesRead;
    return this.#quietSweeps;
  }

  close(code: number, reason: string, isListening = false): void {
    if (this.#state !== "open") return;
    this.#state = "closing";
    this.#isListening = isListening;
    this.#problem ??= reason;
    this.#write({ kind: "close", code, reason });
    this.#setTimer(closeGraceMs);
  }

  /** `problem` null: the process has let go of it without a word to itself. */
  terminate(problem: string | null): void {
    if (this.isGone) return;
    if (problem?.startsWith("its buffer of") === true) this.connection.counts.peerBuffersFull += 1;
    this.#problem ??= problem;
    this.hangUp();
    this.#process?.deliverIn(0, "closed", () => this.#tellClosed());
  }

  /** The process has closed the socket, or has died: the kernel says so, by a reset if there was something left to read. */
  hangUp(): void {
    if (this.isGone) return;
    this.#end();
    if (this.#unread.length > 0) this.#abort();
    // Who gives up before he was answered has nothing to end.
    else if (this.connection.isAnswered || this.side === "callee") this.#outPipe.shut();
    else this.#outPipe.discard();
    this.#unread = [];
  }

  /** Nobody listens here. */
  refuse(): void {
    this.#end();
    this.#abort();
  }

  /** The machine is off: nobody says a word. */
  vanish(): void {
    if (!this.isGone) this.#end();
    this.#unread = [];
    this.#outPipe.discard();
  }

  onArrival(packet: Packet, size: number): void {
    if (this.isGone) {
      this.#answerStray(packet, size);
      return;
    }
    if (this.connection.onKernelPacket(this, packet)) {
      this.#inPipe.consume(size);
      return;
    }
    this.#unread.push({ packet, size });
    this.#process?.deliver(this.#read);
  }

  /** A frame of this or an older socket comes once more. Before a socket's own first one nothing can. */
  onRepeat(bytes: Uint8Array): void {
    if (this.#state !== "open" || !this.#hasReadData) return;
    this.connection.counts.repeats += 1;
    this.#process?.deliver(() => {
      if (this.#state !== "open" || !this.#isListening) return;
      this.connection.noteFrame(this.side, bytes, "delivered");
      this.#events?.onMessage(bytes);
    });
  }

  onReset(): void {
    if (this.isGone) return;
    this.#outPipe.discard();
    this.#unread.push({ packet: null, size: 0 });
    if (this.#process === null) this.#end();
    else this.#process.deliver(this.#read);
  }

  get #outPipe(): Pipe {
    if (this.#out === null) throw new Error("not connected");
    return this.#out;
  }

  get #inPipe(): Pipe {
    if (this.#in === null) throw new Error("not connected");
    return this.#in;
  }

  /** It leaves when the process is so far that it sends it. */
  #write(packet: Packet): void {
    this.#outPipe.write(packet, this.#process?.aheadMs ?? 0);
  }

  /** With the reset its own last frames, which may be under way still, are forgotten. */
  #answerStray(packet: Packet, size: number): void {
    this.#inPipe.consume(size);
    if (packet.kind === "fin") return;
    this.connection.counts.strayFrames += 1;
    this.#abort();
  }

  #abort(): void {
    this.#outPipe.discard();
    this.#outPipe.sendReset();
  }

  readonly #read = (): void => {
    if (this.isGone || (this.#isPaused && this.#readAhead === 0)) return;
    if (this.#readAhead > 0) this.#readAhead -= 1;
    const next = this.#unread.shift();
    if (next === undefined) return;
    this.#bytesRead += next.size;
    this.#inPipe.consume(next.size);
    if (next.packet === null) this.#onBroken("read ECONNRESET");
    else this.#onPacket(next.packet);
  };

  #readAll(): void {
    while (!this.isGone && this.#unread.length > 0 && (!this.#isPaused || this.#readAhead > 0)) this.#read();
  }

  #onPacket(packet: Packet): void {
    switch (packet.kind) {
      case "data":
        this.#onData(packet.bytes);
        return;
      case "ping":
        if (this.connection.answersPings && this.#state === "open") this.#write(pong);
        return;
      case "pong":
        if (this.#isListening) this.#events?.onPong?.();
        return;
      case "close":
        this.#onClose(packet.code);
        return;
      case "fin":
        this.#onFin();
        return;
      default:
        this.#opening?.onStep(packet);
    }
  }

  #onData(bytes: Uint8Array): void {
    this.connection.noteFrame(this.side, bytes, "delivered");
    if (this.side === "callee") this.connection.maybeRepeat(bytes);
    this.#hasReadData = true;
    if (this.#isListening) this.#events?.onMessage(bytes);
  }

  #onClose(code: number): void {
    this.#closeCode = code;
    this.#isListening = false;
    if (this.#state === "open") {
      this.#state = "closing";
      this.#write({ kind: "close", code, reason: "" });
      this.#setTimer(closeTimeoutMs);
    }
    this.#write(fin);
  }

  #onFin(): void {
    if (this.#opening !== null) this.#onBroken("socket hang up");
    else {
      this.#end();
      this.#outPipe.shut();
      this.#tellClosed();
    }
  }

  #onBroken(problem: string): void {
    const opening = this.#opening;
    this.#end();
    this.#outPipe.discard();
    if (opening !== null) {
      opening.onBroken(this.connection.isAnswered ? "dialFailed" : "connectionRefused", problem);
      return;
    }
    this.#problem ??= problem;
    this.#tellClosed();
  }

  #tellClosed(): void {
    const events = this.#events;
    this.#events = null;
    events?.onClosed(
      this.#problem ?? (this.#closeCode === 1006 ? "closed without a closing handshake" : null),
      this.#closeCode,
    );
  }

  #setTimer(delayMs: number): void {
    this.#timer =
      this.#process?.setTimer(delayMs, () => {
        this.connection.counts.graceEnds += 1;
        this.terminate(null);
      }) ?? null;
  }

  #end(): void {
    this.#state = "gone";
    this.#isListening = false;
    this.#opening = null;
    this.#timer?.cancel();
    this.#timer = null;
    this.#inPipe.forgetUnread();
    this.connection.noteGone(this);
  }
}

const ping: Packet = { kind: "ping" };
const pong: Packet = { kind: "pong" };
const fin: Packet = { kind: "fin" };
