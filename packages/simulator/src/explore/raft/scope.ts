/** What is explored: how far, and how much of what goes wrong. */
export interface Scope {
  readonly nodes: number;
  /** What would begin a later term is left out. */
  readonly termMax: number;
  /** Longest log, a leader's first entry of a term included. */
  readonly entriesMax: number;
  /** Election timeouts, of all nodes together; Infinity for no bound. */
  readonly timeoutsMax: number;
  /** Outputs that wait for one disk; what would add another is left out. */
  readonly pendingMax: number;
  /** Crashes, each followed by a restart at once: a node that is down is one that hears nothing. */
  readonly crashesMax: number;
  /** Links that a node is told of as lost: a peer that is gone, a link made anew. */
  readonly resetsMax: number;
  /** How often a turn takes another event before its output is taken. */
  readonly joinsMax: number;
  /** Late: a write returns at any time later. Otherwise before anything else happens to the node. */
  readonly isDiskLate: boolean;
  /** Start when the first node has been elected in term 1 and everything sent is heard; otherwise with new nodes. */
  readonly isLed: boolean;
}
