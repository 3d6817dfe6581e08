/** What waits for the next turn. Peers and the disk go first: no flood of clients may keep a heartbeat or its answer waiting. */
import type { Event, Message, NodeId } from "@holdfast/raft";
import type { ClientMessage } from "@holdfast/wire";
import type { ClientConnection } from "./ports.js";

export type NodeEvent =
  | { readonly kind: "peer"; readonly from: NodeId; readonly messages: readonly Message[] }
  | { readonly kind: "persisted"; readonly number: number }
  | { readonly kind: "peerGone" | "peerReset"; readonly peer: NodeId }
  | { readonly kind: "step"; readonly event: (nowMs: number) => Event };

export interface ClientFrame {
  readonly connection: ClientConnection;
  readonly messages: readonly ClientMessage[];
}

export class TurnQueue {
  private events: NodeEvent[] = [];
  private frames: ClientFrame[] = [];
  private handled = 0;
  /** Of all frames that ever came. */
  private pushed = 0;

  get isEmpty(): boolean {
    return this.events.length === 0 && this.handled === this.frames.length;
  }

  push(event: NodeEvent): void {
    this.events.push(event);
  }

  pushFrame(frame: ClientFrame): void {
    this.frames.push(frame);
    this.pushed += 1;
  }

  /** The number of the newest frame; they count from 1. */
  get newestFrame(): number {
    return this.pushed;
  }

  /** Whether that frame has been taken. */
  hasTaken(frame: number): boolean {
    return this.pushed - (this.frames.length - this.handled) >= frame;
  }

  /** All of them, in their order. */
  takeEvents(): readonly NodeEvent[] {
    const { events } = this;
    this.events = [];
    return events;
  }

  /** The oldest frame of a client. */
  takeFrame(): ClientFrame | undefined {
    const frame = this.frames[this.handled];
    if (frame === undefined) return undefined;
    this.handled += 1;
    if (this.handled === this.frames.length) {
      this.frames = [];
      this.handled = 0;
    } else if (this.handled >= 4_096) {
      this.frames = this.frames.slice(this.handled);
      this.handled = 0;
    }
    return frame;
  }
}
