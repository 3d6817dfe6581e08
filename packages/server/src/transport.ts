/**
 * What the peer links and client connections need from the network, declared by the consumer. Production implements it with ws
 * (ws-transport.ts, web-socket.ts); the simulator with a virtual network.
 */
import type { Address } from "./address.js";
import type { Lane } from "./peer-lanes.js";

export interface SocketEvents {
  /** One binary message. */
  onMessage(bytes: Uint8Array): void;
  /** Once; nothing comes after it. `problem`: what broke it, or null after an orderly close. */
  onClosed(problem: string | null): void;
}

/** An open socket of frames, which arrive in order or not at all. */
export interface FrameSocket {
  readonly isOpen: boolean;
  /** Bytes that were sent and have not reached the kernel. */
  readonly bufferedBytes: number;
  /** False when the socket is not open any more. */
  send(bytes: Uint8Array): boolean;
  ping(): void;
  /** A sign of life, unless something was sent since the last one. */
  pingIfIdle(): void;
  /** Reads nothing more for now; what has been read already still comes. */
  pause(): void;
  resume(): void;
  /** How many sweeps in a row have found no byte from the other side, this one included. */
  sweep(): number;
  /** Sends what is queued, says why, and closes within half a second. Nothing more is read, unless `isListening`. */
  close(code: number, reason: string, isListening?: boolean): void;
  /** At once; what is queued is lost. */
  terminate(problem: string): void;
}

/** Takes the socket over: once, at once, before anything arrives on it. */
export type Attach = (events: SocketEvents) => FrameSocket;

export interface DialRequest {
  /** "host:port" */
  readonly address: string;
  readonly lane: Lane;
  /** The calling process's random name, and the number of its call. */
  readonly process: string;
  readonly dial: number;
  readonly secret: string | null;
  readonly handshakeMs: number;
}

/** No event comes within dial(), and none after cancel(). */
export interface DialEvents {
  /** The handshake is done. `process`: the other process's name, "" when it gave none. */
  onOpened(process: string, attach: Attach): void;
  /** The other side asks for another secret. onFailed follows. */
  onUnauthorized(): void;
  /** Instead of onOpened: it came to nothing. */
  onFailed(kind: "connectionRefused" | "dialFailed", problem: string): void;
}

/** A call under way. */
export interface Dial {
  /** Gives it up. Does nothing when the call has ended, or been given up before. */
  cancel(): void;
}

export interface AcceptedCall {
  readonly lane: Lane;
  readonly process: string;
  readonly dial: number;
  /** "address:port", for the log. */
  readonly remote: string;
}

export interface AcceptorOptions {
  readonly process: string;
  readonly secret: string | null;
  /** Sockets at once. Peers need two each; the rest is for links that are being replaced. */
  readonly socketsMax: number;
}

/** The door for peers. */
export interface Acceptor {
  /** Resolves with the port; rejects with a ListenError. */
  listen(address: Address): Promise<number>;
  /** Takes no new calls: a peer that is told goodbye must not get in again through a door that is about to close. */
  stopListening(): void;
  /** Resolves when the port is free. Links that are still open are torn down. */
  close(): Promise<void>;
}

export interface PeerTransport {
  dial(request: DialRequest, events: DialEvents): Dial;
  /** `onCall` must attach at once. */
  createAcceptor(options: AcceptorOptions, onCall: (call: AcceptedCall, attach: Attach) => void): Acceptor;
}
