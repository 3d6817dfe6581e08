/** The way to the leader, as sessions, questions and watches use it. */
import type { ClientMessage, NodeAddress } from "@holdfast/wire";

export interface LeaderLink {
  /** A leader is connected. What is sent while it isn't is dropped. */
  readonly isReady: boolean;
  /** Whether the leader's welcome names it. */
  hasFeature(feature: string): boolean;
  send(message: ClientMessage): void;
  onNotLeader(leader: NodeAddress | null): void;
  /** The leader doesn't answer. */
  suspect(): void;
  /** The connection is no good: make a new one. */
  drop(problem: string): void;
}
