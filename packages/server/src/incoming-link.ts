/** One lane from one peer, which has dialled it: hello first, then raft's messages come in. */
import type { Message, NodeId } from "@holdfast/raft";
import { decodePeerFrame, encodePeerFrame } from "@holdfast/wire";
import type { PeerFrame, PeerHello } from "@holdfast/wire";
import type { HelloRefusal } from "./peer-hello.js";
import type { Clock, Timer } from "./ports.js";
import type { AcceptedCall, Attach, FrameSocket } from "./transport.js";

export type FormedFrame = Extract<PeerFrame, { readonly kind: "formed" }>;

export interface IncomingEvents {
  /** This node's own hello, as an answer. */
  hello(to: NodeId): PeerHello;
  judge(hello: PeerHello, process: string): HelloRefusal | null;
  /** False: this link is older than the one that is in use, and is dropped. */
  onAccepted(link: IncomingLink, hello: PeerHello): boolean;
  /** The caller has refused this node's hello. */
  onRefused(link: IncomingLink, refusal: HelloRefusal, hello: PeerHello): void;
  onMessages(link: IncomingLink, hello: PeerHello, messages: readonly Message[]): void;
  onFormed(link: IncomingLink, hello: PeerHello, frame: FormedFrame): void;
  /** Once. `hello`: of a link that had been accepted, else null. */
  onClosed(link: IncomingLink, hello: PeerHello | null, saidGoodbye: boolean, problem: string): void;
}

export interface IncomingOptions extends AcceptedCall {
  readonly helloMs: number;
}

export class IncomingLink {
  readonly options: IncomingOptions;
  private readonly events: IncomingEvents;
  private readonly socket: FrameSocket;
  private readonly timer: Timer;
  private accepted: PeerHello | null = null;
  /** The hello that was refused here or whose sender has refused this node. */
  private refusing: PeerHello | null = null;
  private saidGoodbye = false;

  constructor(options: IncomingOptions, attach: Attach, clock: Clock, events: IncomingEvents) {
    this.options = options;
    this.events = events;
    this.socket = attach({
      onMessage: (bytes) => this.onBytes(bytes),
      onClosed: (problem) => {
        this.timer.cancel();
        events.onClosed(this, this.accepted, this.saidGoodbye, problem ?? "closed");
      },
    });
    this.timer = clock.setTimer(options.helloMs, () => {
      if (this.accepted === null) this.socket.terminate("no hello came");
    });
  }

  get peerHello(): PeerHello | null {
    return this.socket.isOpen ? this.accepted : null;
  }

  get bufferedBytes(): number {
    return this.socket.bufferedBytes;
  }

  sweep(quietMax: number): void {
    if (this.socket.sweep() >= quietMax) this.socket.terminate("nothing was heard from it");
    else this.socket.pingIfIdle();
  }

  /** A newer link of the same peer and lane takes its place: whatever is still in this one is old, and is read no more. */
  supersede(): void {
    this.saidGoodbye = true;
    this.socket.terminate("a newer link has taken its place");
  }

  close(): void {
    this.saidGoodbye = true;
    this.socket.send(encodePeerFrame({ kind: "goodbye" }));
    this.socket.close(1001, "goodbye");
  }

  abandon(): void {
    this.socket.terminate("abandoned");
  }

  private onBytes(bytes: Uint8Array): void {
    let frame: PeerFrame;
    try {
      frame = decodePeerFrame(bytes);
    } catch (error) {
      this.socket.terminate(`sent a bad frame: ${error instanceof Error ? error.message : String(error)}`);
      return;
    }
    if (frame.kind === "hello") this.onHello(frame);
    else if (frame.kind === "refused") this.onRefusedFrame({ code: frame.code, problem: frame.problem });
    else if (this.accepted !== null) this.onAcceptedFrame(this.accepted, frame);
    else if (this.refusing === null) this.socket.terminate(`sent "${frame.kind}" before its hello`);
  }

  private onHello(hello: PeerHello): void {
    if (this.refusing !== null) return;
    if (this.accepted !== null) {
      this.socket.terminate("said hello twice");
      return;
    }
    this.timer.cancel();
    const refusal = this.events.judge(hello, this.options.process);
    // Its own hello goes first in any case: the caller is to know who refuses it, and may have its own opinion of this node.
    this.socket.send(encodePeerFrame(this.events.hello(hello.from)));
    if (refusal !== null) {
      this.refusing = hello;
      this.socket.send(encodePeerFrame({ kind: "refused", code: refusal.code, problem: refusal.problem }));
      this.socket.close(1008, "refused", true);
      return;
    }
    this.accepted = hello;
    if (this.events.onAccepted(this, hello)) return;
    this.accepted = null;
    this.supersede();
  }

  private onRefusedFrame(refusal: HelloRefusal): void {
    const hello = this.accepted ?? this.refusing;
    if (hello === null) {
      this.socket.terminate("refused before its hello");
      return;
    }
    this.saidGoodbye = true;
    this.events.onRefused(this, refusal, hello);
    this.socket.close(1000, "refused");
  }

  private onAcceptedFrame(hello: PeerHello, frame: Exclude<PeerFrame, { readonly kind: "hello" | "refused" }>): void {
    switch (frame.kind) {
      case "goodbye":
        this.saidGoodbye = true;
        this.socket.close(1000, "goodbye");
        return;
      case "formed":
        this.events.onFormed(this, hello, frame);
        return;
      case "raft":
        this.events.onMessages(this, hello, frame.messages);
        return;
      default:
        assertNever(frame);
    }
  }
}

function assertNever(value: never): never {
  throw new Error(`unexpected frame ${JSON.stringify(value)}`);
}
