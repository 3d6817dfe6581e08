/** What waits for the next turn. Peers and the disk go first: no flood of clients may keep a heartbeat or its answer waiting. */
import type { Event, Message, NodeId } from "@holdfast/raft";
import { ClientQueue } from "./client-queue.js";

export type NodeEvent =
  | { readonly kind: "peer"; readonly from: NodeId; readonly messages: readonly Message[] }
  | { readonly kind: "persisted"; readonly number: number }
  | { readonly kind: "peerGone" | "peerReset"; readonly peer: NodeId }
  | { readonly kind: "step"; readonly event: (nowMs: number) => Event };

export class TurnQueue {
  private events: NodeEvent[] = [];
  readonly clients: ClientQueue = new ClientQueue();

  get isEmpty(): boolean {
    return this.events.length === 0 && this.clients.isEmpty;
  }

  push(event: NodeEvent): void {
    this.events.push(event);
  }

  /** All of them, in their order. */
  takeEvents(): readonly NodeEvent[] {
    const { events } = this;
    this.events = [];
    return events;
  }
}
