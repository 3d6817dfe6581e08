/**
 * The network between the parties of a run, whose ways can be cut and shaped one by one. Two implementations: a TCP proxy for each
 * ordered pair (anywhere), and a network namespace for each party (where the kernel lets us). The same scenarios run on both.
 */

/** A node's id, or a worker's name. The harness itself is `harness`: no fault ever touches its ways. */
export type Party = string;

export const harness: Party = "harness";

/** A node listens twice. */
export type Door = "peer" | "client";

export interface Network {
  readonly mode: "proxy" | "netns";
  /** Where the harness listens for parties (the ways to the store): they reach it there whatever is cut. */
  readonly harnessHost: string;
  /** The "host:port" that the node itself binds. */
  bindAddress(node: Party, door: Door): string;
  /** The "host:port" under which `viewer` reaches the node. */
  addressOf(viewer: Party, node: Party, door: Door): string;
  /** The command that starts `command` as a process of this party. */
  wrap(party: Party, command: readonly string[]): readonly string[];
  /**
   * Cuts the way of bytes from one party to another; connections stay open, nobody is told. Directed. A new connection over a cut way
   * gets no answer, as when its first packet is lost.
   */
  cut(from: Party, to: Party): Promise<void>;
  heal(from: Party, to: Party): Promise<void>;
  /** For all traffic of that way from now on; null takes it away. */
  shape(from: Party, to: Party, shape: Shape | null): Promise<void>;
  /** Breaks the connections between the two, with a reset. New ones can be made. */
  reset(one: Party, other: Party): Promise<void>;
  /** Bytes that have passed on this way so far: the proof of a cut. */
  bytesPassed(from: Party, to: Party): Promise<number>;
  close(): Promise<void>;
}

export interface Shape {
  readonly delayMs?: number;
  /** Up to so much more, drawn anew for each piece. Pieces of one connection keep their order. */
  readonly jitterMs?: number;
  /**
   * Share of the pieces that are lost. What runs over TCP sees no loss but the wait for the repetition: a proxy lets each lost piece
   * wait for a retransmission timeout.
   */
  readonly lossFraction?: number;
  readonly bytesPerSecond?: number;
}

/** The parties that there are, known before the first process starts. */
export interface Parties {
  readonly nodes: readonly Party[];
  readonly workers: readonly Party[];
}
