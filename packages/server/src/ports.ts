/**
 * What the node host needs from the world, declared by the consumer. Production implements them with ws, level and timers; the
 * simulator with a virtual network, disk and clock.
 */
import type { Configuration, Message, NodeId } from "@holdfast/raft";
import type { ClientMessage, NodeAddress, PeerRefusalCode, ServerMessage } from "@holdfast/wire";

export interface Timer {
  cancel(): void;
}

export interface Clock {
  /** Milliseconds with fractions; never falls, unrelated to wall time. */
  monotonicMs(): number;
  /** For people to read; no decision looks at it. */
  wallMs(): number;
  /** Calls `run` once, not before `delayMs` have passed by this clock. Delays above 2^31-1 ms are cut in pieces. */
  setTimer(delayMs: number, run: () => void): Timer;
  /** Calls `run` after the sockets that are readable now have been read once. */
  setImmediate(run: () => void): void;
}

/**
 * The links to the other nodes. Messages to one peer arrive in order or not at all; a full or missing link drops them. Appends and
 * snapshot chunks have a lane of their own: they keep their order among themselves, and everything else may overtake them.
 */
export interface PeerLinks {
  send(to: NodeId, messages: readonly Message[]): void;
  /** Whom to link with from now on: `inForce` is the newest in the log, `committed` the newest that is known to be committed. */
  noteConfiguration(inForce: Configuration, committed: Configuration): void;
  /** Says goodbye on every link, then closes. */
  close(): Promise<void>;
}

/** What the peer links tell the host. */
export interface PeerEvents {
  onMessages(from: NodeId, messages: readonly Message[]): void;
  /** The link closed without a goodbye and its reconnect was refused: the process is gone. */
  onPeerGone(peer: NodeId): void;
  /** A link was made anew (after its hello). */
  onPeerReset(peer: NodeId): void;
}

/** One client's connection, as the gateway sees it. */
export interface ClientConnection {
  readonly id: number;
  /** "address:port", for the log. */
  readonly remote: string;
  /** Queues a message; all of one turn leave in one frame. Drops when the connection is closed; closes it when its buffer is full. */
  send(message: ServerMessage): void;
  /** No more is read from it; what was read already may still come. */
  pause(): void;
  resume(): void;
  /** `code` is a websocket close code. */
  close(code: number, reason: string): void;
}

/** What a client has sent at once. */
export interface ClientFrame {
  /** What it takes while it waits. */
  readonly bytes: number;
  /** Decodes them and checks them, message by message; called once. A frame that can't be decoded has none, and its connection is closed with 1007. */
  messages(): readonly ClientMessage[];
}

/** What the client listener tells the gateway. */
export interface ClientEvents {
  onOpened(connection: ClientConnection): void;
  onFrame(connection: ClientConnection, frame: ClientFrame): void;
  onClosed(connection: ClientConnection): void;
}

/** Why this node must end: the others refused it. */
export interface PeerRefusal {
  readonly from: NodeId;
  readonly code: PeerRefusalCode;
  readonly problem: string;
}

/** A structured logger with pino's shape. One line per state change. */
export interface Logger {
  debug(facts: object, text: string): void;
  info(facts: object, text: string): void;
  warn(facts: object, text: string): void;
  error(facts: object, text: string): void;
}

export type { NodeAddress };
