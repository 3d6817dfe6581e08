/** What is explored: how far, and how much of what goes wrong. Timeouts, crashes and resets may be Infinity: any number of them. */
export interface Scope {
  readonly nodes: number;
  /** At most 2 (see ghost.ts). What would begin a later term is left out. */
  readonly termMax: number;
  /** Longest log, a leader's first entry of a term included. */
  readonly entriesMax: number;
  /** Election timeouts, of all nodes together. */
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
  /**
   * A leader's heartbeats are due again after each of its events; otherwise at any time. Nothing is lost by that: they are messages on
   * their way, and of the leader they change only how long it has waited for answers. One that has waited long enough to ask again can do
   * all that another can: what makes it ask does nothing to the other, and needs not arrive.
   */
  readonly areHeartbeatsPrompt: boolean;
  /** Start when the first node has been elected in term 1 and everything sent but heartbeats is heard; otherwise with new nodes. */
  readonly isLed: boolean;
}
