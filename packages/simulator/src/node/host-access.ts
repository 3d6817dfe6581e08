/** Private parts of a node host that the simulator looks at: what NodeHost's sources say of them. */
import type { LockMachine } from "@holdfast/lock";
import type { Event, Message, Raft } from "@holdfast/raft";
import type { NodeHost } from "@holdfast/server";
import type { NodeAddress } from "@holdfast/wire";

export interface ProbedHost {
  readonly raft: Raft;
  readonly applier: { readonly machine: LockMachine; readonly lastApplied: number };
  readonly parts: { readonly links: { send(to: string, messages: readonly Message[]): void } };
  readonly queue: { takeEvents(): readonly unknown[] };
  readonly isServing: boolean;
  enqueue(event: { readonly kind: "step"; event(nowMs: number): Event }): void;
  beginTransfer(to: string | null, withinMs: number, onEnded: (leader: NodeAddress | null) => void): void;
}

export function probed(host: NodeHost): ProbedHost {
  return host as unknown as ProbedHost;
}
