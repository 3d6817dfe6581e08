/**
 * What clients have sent and no turn has handled yet: a lane for each connection, served in rotation. Who sends much waits for itself; a
 * keepalive on a quiet connection overtakes any flood on others.
 */
import type { ClientMessage } from "@holdfast/wire";
import { Fifo } from "./fifo.js";
import type { ClientConnection, ClientFrame } from "./ports.js";

/** Of a connection, before it is another's turn: a millisecond's work, and more than most frames have. */
const messagesPerShareMax = 64;

export interface ClientShare {
  readonly connection: ClientConnection;
  /** Of one frame, in their order; none of one that could not be decoded. */
  readonly messages: readonly ClientMessage[];
  /** Of the frame, with its first share: they wait no more. */
  readonly bytes: number;
}

interface WaitingFrame {
  readonly number: number;
  readonly frame: ClientFrame;
}

interface Lane {
  readonly connection: ClientConnection;
  readonly frames: Fifo<WaitingFrame>;
  /** Of its first frame, what no share has had yet; null: all. */
  rest: readonly ClientMessage[] | null;
}

export class ClientQueue {
  private readonly lanes = new Map<ClientConnection, Lane>();
  private readonly rotation = new Fifo<Lane>();
  /** Frames that ever came. */
  private pushed = 0;

  get isEmpty(): boolean {
    return this.lanes.size === 0;
  }

  /** The number of the newest frame; they count from 1. */
  get newestFrame(): number {
    return this.pushed;
  }

  push(connection: ClientConnection, frame: ClientFrame): void {
    this.pushed += 1;
    let lane = this.lanes.get(connection);
    if (lane === undefined) {
      lane = { connection, frames: new Fifo(), rest: null };
      this.lanes.set(connection, lane);
      this.rotation.push(lane);
    }
    lane.frames.push({ number: this.pushed, frame });
  }

  /** Whether that frame, and all that came before it, have been taken to their ends. Costs a look at each lane. */
  hasTaken(frame: number): boolean {
    for (const { frames } of this.lanes.values()) {
      if (frames.first !== undefined && frames.first.number <= frame) return false;
    }
    return true;
  }

  /** What is next of the connection whose turn it is. */
  takeShare(): ClientShare | undefined {
    const lane = this.rotation.shift();
    const waiting = lane?.frames.first;
    if (lane === undefined || waiting === undefined) return undefined;
    const { connection, rest } = lane;
    const { frame } = waiting;
    const all = rest ?? frame.messages();
    const messages = all.length > messagesPerShareMax ? all.slice(0, messagesPerShareMax) : all;
    lane.rest = messages === all ? null : all.slice(messagesPerShareMax);
    if (lane.rest === null) lane.frames.shift();
    if (lane.frames.length > 0) this.rotation.push(lane);
    else this.lanes.delete(connection);
    return { connection, messages, bytes: rest === null ? frame.bytes : 0 };
  }
}
