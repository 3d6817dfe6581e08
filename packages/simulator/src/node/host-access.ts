/** Private parts of a node host that the simulator looks at: what NodeHost's sources say of them. */
import type { Event, Message } from "@holdfast/raft";
import type { NodeHost } from "@holdfast/server";
import type { NodeAddress } from "@holdfast/wire";
import type { ProbedHost as WatchedHost } from "../invariants/host-probe.js";

export interface ProbedHost extends WatchedHost {
  readonly options: { readonly clusterId: string };
  readonly parts: WatchedHost["parts"] & { readonly links: { send(to: string, messages: readonly Message[]): void } };
  readonly queue: WatchedHost["queue"] & {
    takeEvents(): readonly unknown[];
    readonly clients: { readonly newestFrame: number; hasTaken(frame: number): boolean };
  };
  readonly leadership: { readonly isServing: boolean };
  enqueue(event: { readonly kind: "step"; event(nowMs: number): Event }): void;
  beginTransfer(to: string | null, withinMs: number, onEnded: (leader: NodeAddress | null) => void): void;
}

export function probed(host: NodeHost): ProbedHost {
  return host as unknown as ProbedHost;
}

interface Sized {
  readonly size: number;
}

interface Long {
  readonly length: number;
}

/** Whatever may pile up in a node: it must be empty when nobody is there. */
export interface RestingParts {
  readonly gateway: {
    readonly connections: ReadonlyMap<{ readonly remote: string }, unknown>;
    readonly sessions: {
      readonly owners: {
        readonly owners: Sized;
        readonly resumes: Sized;
        readonly sessionsOf: ReadonlyMap<{ readonly remote: string }, unknown>;
      };
      readonly openings: { readonly byKey: Sized; readonly keysOf: Sized };
    };
    readonly queries: { readonly open: Sized; readonly forces: Long };
    readonly watches: {
      readonly all: ReadonlyMap<{ readonly remote: string }, unknown>;
      readonly byName: Sized;
      readonly byPrefix: Sized;
    };
  };
  readonly keeper: {
    readonly leases: Sized;
    readonly gathering: Sized;
    readonly toRenew: Sized;
    readonly awaitingRound: Long;
    readonly readyToExpire: Long;
    readonly expiriesInFlight: number;
  };
  readonly rounds: {
    readonly gathering: Long;
    readonly patient: Long;
    readonly inFlight: Sized;
    readonly unapplied: Long;
  };
  readonly answers: { readonly ofLeases: Long; readonly questions: Long };
  readonly transfers: { readonly waiting: Long };
  readonly proposals: { readonly refusals: Sized };
  readonly queue: { readonly clients: { readonly lanes: Sized } };
}

export function restingParts(host: NodeHost): RestingParts {
  return host as unknown as RestingParts;
}
