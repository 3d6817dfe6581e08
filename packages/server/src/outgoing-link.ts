/**
 * One lane to one peer: dials, greets, sends, and dials again when it is lost. A link is directed: raft's messages leave on the links
 * that this node has dialled, and come in on those that the peers have.
 */
import type { Message, NodeId } from "@holdfast/raft";
import { decodePeerFrame, encodePeerFrame, encodeRaftFrames } from "@holdfast/wire";
import type { PeerFrame, PeerHello } from "@holdfast/wire";
import type { HelloRefusal } from "./peer-hello.js";
import type { Lane } from "./peer-lanes.js";
import type { Clock, Timer } from "./ports.js";
import type { Attach, Dial, FrameSocket, PeerTransport } from "./transport.js";

/** Why a link is down. */
export type LossKind =
  /** Nobody listens there: the connection was refused. */
  | "connectionRefused"
  /** A dial that came to nothing otherwise: a time-out, a reset in mid-handshake, an answer that isn't ours. */
  | "dialFailed"
  /** One of the two sides has refused the other's hello. */
  | "helloRefused"
  | "goodbye"
  /** It was open, and closed without a goodbye. */
  | "broken";

export interface OutgoingEvents {
  /** The greeting that this node sends now. */
  hello(): PeerHello;
  /** Judges the peer's answer. */
  judge(hello: PeerHello, process: string): HelloRefusal | null;
  onOpen(hello: PeerHello): void;
  /** The peer has refused this node; `peerHello` if it came first. */
  onRefused(refusal: HelloRefusal, peerHello: PeerHello | null): void;
  /** This link is down. The owner decides when to dial again. */
  onLost(loss: LossKind, problem: string): void;
}

export interface OutgoingOptions {
  readonly peer: NodeId;
  readonly lane: Lane;
  /** "host:port" */
  readonly address: string;
  readonly process: string;
  readonly secret: string | null;
  readonly handshakeMs: number;
  readonly bufferedBytesMax: number;
}

export interface OutgoingParts {
  readonly clock: Clock;
  readonly transport: PeerTransport;
}

type State =
  | { readonly kind: "down" }
  | { readonly kind: "dialling"; readonly dial: Dial; readonly sinceMs: number }
  | { readonly kind: "greeting"; readonly socket: FrameSocket; readonly process: string; readonly timer: Timer }
  | { readonly kind: "open"; readonly socket: FrameSocket; readonly hello: PeerHello }
  /** One side has refused the other; the other's opinion is still of interest. */
  | { readonly kind: "refusing"; readonly socket: FrameSocket; readonly hello: PeerHello | null };

export class OutgoingLink {
  private readonly options: OutgoingOptions;
  private readonly parts: OutgoingParts;
  private readonly events: OutgoingEvents;
  private state: State = { kind: "down" };
  private dials = 0;
  private loss: LossKind = "broken";

  constructor(options: OutgoingOptions, parts: OutgoingParts, events: OutgoingEvents) {
    this.options = options;
    this.parts = parts;
    this.events = events;
  }

  /** The peer's greeting while this link is open, else null. */
  get peerHello(): PeerHello | null {
    return this.state.kind === "open" ? this.state.hello : null;
  }

  get isDown(): boolean {
    return this.state.kind === "down";
  }

  get bufferedBytes(): number {
    return this.state.kind === "open" ? this.state.socket.bufferedBytes : 0;
  }

  /** Does nothing unless the link is down. */
  dial(): void {
    if (this.state.kind !== "down") return;
    const { clock, transport } = this.parts;
    const { address, lane, process, secret, handshakeMs } = this.options;
    this.dials += 1;
    this.loss = "dialFailed";
    const dial = transport.dial(
      { address, lane, process, dial: this.dials, secret, handshakeMs },
      {
        onOpened: (peerProcess, attach) => this.greet(peerProcess, attach),
        onUnauthorized: () => this.onUnauthorized(),
        onFailed: (kind, problem) => {
          if (kind === "connectionRefused") this.loss = kind;
          this.onDown(problem);
        },
      },
    );
    this.state = { kind: "dialling", dial, sinceMs: clock.monotonicMs() };
  }

  /** Gives up a dial that has hung for a while, and dials anew: the peer has just shown that it can be reached. */
  redialIfHanging(afterMs: number): void {
    const { state } = this;
    if (state.kind !== "dialling" || this.parts.clock.monotonicMs() - state.sinceMs < afterMs) return;
    this.state = { kind: "down" };
    state.dial.cancel();
    this.dial();
  }

  /** Drops the messages when the link isn't open; drops them and breaks the link when its buffer is full. */
  send(messages: readonly Message[]): void {
    if (this.state.kind !== "open") return;
    for (const bytes of encodeRaftFrames(messages)) this.sendBytes(bytes);
  }

  sendFrame(frame: PeerFrame): void {
    this.sendBytes(encodePeerFrame(frame));
  }

  private sendBytes(bytes: Uint8Array): void {
    const { state } = this;
    if (state.kind !== "open") return;
    if (state.socket.bufferedBytes + bytes.length > this.options.bufferedBytesMax) {
      // The peer doesn't read: what would pile up here is old by the time it is read. A fresh link begins with a probe.
      state.socket.terminate(`its buffer of ${this.options.bufferedBytesMax} bytes is full`);
      return;
    }
    state.socket.send(bytes);
  }

  /** Once per period: a sign of life to the peer, and a look for one from it. */
  sweep(quietMax: number): void {
    const { state } = this;
    if (state.kind !== "open") return;
    if (state.socket.sweep() >= quietMax) state.socket.terminate("nothing was heard from it");
    else state.socket.pingIfIdle();
  }

  /** Says goodbye and closes. */
  close(): void {
    const { state } = this;
    if (state.kind === "dialling") {
      this.giveUp(state);
    } else if (state.kind !== "down") {
      this.loss = "goodbye";
      state.socket.send(encodePeerFrame({ kind: "goodbye" }));
      state.socket.close(1001, "goodbye");
    }
  }

  /** Tears the link down without a word. */
  abandon(): void {
    const { state } = this;
    if (state.kind === "dialling") this.giveUp(state);
    else if (state.kind !== "down") state.socket.terminate("abandoned");
  }

  /** A loss like any other, so the owner hears of it; but not before this call returns. */
  private giveUp(state: Extract<State, { readonly kind: "dialling" }>): void {
    state.dial.cancel();
    this.parts.clock.setImmediate(() => {
      if (this.state === state) this.onDown("given up");
    });
  }

  private greet(process: string, attach: Attach): void {
    const { clock } = this.parts;
    const socket: FrameSocket = attach({
      onMessage: (bytes) => this.onBytes(socket, bytes),
      onClosed: (problem) => {
        if (this.isOn(socket)) this.onDown(problem ?? "closed");
      },
    });
    const timer = clock.setTimer(this.options.handshakeMs, () => {
      if (this.state.kind === "greeting" && this.state.socket === socket) socket.terminate("no hello came");
    });
    this.state = { kind: "greeting", socket, process, timer };
    socket.send(encodePeerFrame(this.events.hello()));
  }

  private isOn(socket: FrameSocket): boolean {
    return this.state.kind !== "down" && this.state.kind !== "dialling" && this.state.socket === socket;
  }

  private onBytes(socket: FrameSocket, bytes: Uint8Array): void {
    if (!this.isOn(socket)) return;
    let frame: PeerFrame;
    try {
      frame = decodePeerFrame(bytes);
    } catch (error) {
      socket.terminate(`sent a bad frame: ${error instanceof Error ? error.message : String(error)}`);
      return;
    }
    this.onFrame(socket, frame);
  }

  private onFrame(socket: FrameSocket, frame: PeerFrame): void {
    const { state } = this;
    switch (frame.kind) {
      case "hello":
        if (state.kind === "greeting") this.onHello(state, frame);
        else if (state.kind !== "refusing") socket.terminate("said hello twice");
        return;
      case "refused":
        this.onRefusedFrame(socket, { code: frame.code, problem: frame.problem });
        return;
      case "goodbye":
        if (state.kind !== "refusing") this.loss = "goodbye";
        socket.close(1000, "goodbye");
        return;
      case "formed":
      case "raft":
        // Raft's messages to this node come on the links that the peer has dialled.
        socket.terminate(`sent "${frame.kind}" against the link's direction`);
        return;
      default:
        assertNever(frame);
    }
  }

  private onHello(state: Extract<State, { readonly kind: "greeting" }>, hello: PeerHello): void {
    state.timer.cancel();
    const refusal = this.events.judge(hello, state.process);
    if (refusal !== null) {
      this.loss = "helloRefused";
      this.state = { kind: "refusing", socket: state.socket, hello };
      state.socket.send(encodePeerFrame({ kind: "refused", code: refusal.code, problem: refusal.problem }));
      state.socket.close(1008, "refused", true);
      return;
    }
    this.loss = "broken";
    this.state = { kind: "open", socket: state.socket, hello };
    this.events.onOpen(hello);
  }

  private onRefusedFrame(socket: FrameSocket, refusal: HelloRefusal): void {
    const { state } = this;
    const hello = state.kind === "open" || state.kind === "refusing" ? state.hello : null;
    if (state.kind === "greeting") state.timer.cancel();
    this.loss = "helloRefused";
    this.state = { kind: "refusing", socket, hello };
    this.events.onRefused(refusal, hello);
    socket.close(1000, "refused");
  }

  private onUnauthorized(): void {
    this.loss = "helloRefused";
    this.events.onRefused({ code: "unauthorized", problem: "the cluster secrets differ" }, null);
  }

  private onDown(problem: string): void {
    if (this.state.kind === "greeting") this.state.timer.cancel();
    this.state = { kind: "down" };
    this.events.onLost(this.loss, problem);
  }
}

function assertNever(value: never): never {
  throw new Error(`unexpected frame ${JSON.stringify(value)}`);
}
