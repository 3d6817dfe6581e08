/** A scenario: which cluster, which load, what is done to them and when, and what must come of it. Read from a file by parse.ts. */
import type { Damage, MachineFault } from "../machine/machine.js";
import type { Shape } from "../network/network.js";

/**
 * Whom a step means, found out when it begins: `leader`, `follower` (the first of them by id), `follower2`, ... , a node's id, `holder` (a worker
 * that holds a lock just then), a worker's name (`w1`), `prober`; and for several at once `others` (all nodes but the other end of the way),
 * `followers`, `nodes`, `workers`, `clients` (the workers and the prober).
 */
export type Role = string;

export interface WayRoles {
  readonly from: Role;
  readonly to: Role;
  /** The way back too. */
  readonly both: boolean;
}

export type Action =
  | { readonly kind: "cut"; readonly ways: readonly WayRoles[] }
  /** Nobody hears a party of another group. */
  | { readonly kind: "split"; readonly groups: readonly (readonly Role[])[] }
  | { readonly kind: "flap"; readonly ways: readonly WayRoles[]; readonly upMs: number; readonly downMs: number }
  | { readonly kind: "shape"; readonly ways: readonly WayRoles[]; readonly shape: Shape }
  | { readonly kind: "reset"; readonly ways: readonly WayRoles[] }
  | { readonly kind: "halfClose"; readonly ways: readonly WayRoles[] }
  /** SIGKILL; started again when the step ends. A node's files are damaged before that. */
  | { readonly kind: "kill"; readonly who: readonly Role[]; readonly damage: Damage | null }
  /** SIGTERM; started again when the step ends. */
  | { readonly kind: "terminate"; readonly who: readonly Role[] }
  /** SIGSTOP; SIGCONT when the step ends. */
  | { readonly kind: "stop"; readonly who: readonly Role[] }
  /** One node after the other, each when the one before serves again. */
  | { readonly kind: "roll"; readonly signal: "SIGTERM" | "SIGKILL" }
  /** Killed and started again, over and over. */
  | { readonly kind: "crashLoop"; readonly who: readonly Role[]; readonly everyMs: number }
  /** A holder is caught between its look and its write, for as long as the step lasts. */
  | { readonly kind: "pause"; readonly how: PauseKind }
  | { readonly kind: "machine"; readonly who: readonly Role[]; readonly fault: MachineFault };

/** `store`: the process goes on, and its writes are held up on their way. */
export type PauseKind = "stop" | "freeze" | "burn" | "store";

export interface Step {
  /** Seconds from the beginning of the load, in the fast run. */
  readonly at: number;
  /** How long it lasts; null: it happens once. */
  readonly forSeconds: number | null;
  readonly action: Action;
  /** Election timeouts within which grants come again; null: nothing is demanded. */
  readonly backWithin: number | null;
  /** From when that is counted: a fault that takes the majority away is over only when it ends. */
  readonly backFrom: "begin" | "end";
}

export interface Expectations {
  readonly electionsMin: number;
  readonly electionsMax: number | null;
  /** By how much the term may rise. */
  readonly termsMax: number | null;
  readonly grantsMin: number;
  /** Stale writes that the guard refused. */
  readonly refusedMin: number;
  readonly lostUnguardedMin: number;
  /** Locks that workers were told to have lost. */
  readonly lossesMax: number | null;
  /** Snapshots that nodes have got from a leader. */
  readonly installsMin: number;
  /** Facts that a rule of the checker must have judged. */
  readonly judged: Readonly<Record<string, number>>;
  /** Exit codes of nodes that refuse to start again, by role's node id; such a node stays down. */
  readonly refusesToStart: number | null;
}

export interface Scenario {
  readonly name: string;
  readonly about: string;
  readonly nodes: 1 | 3 | 5;
  readonly workers: number;
  readonly locks: number;
  readonly mode: "any" | "proxy" | "netns";
  readonly ttlMs: number;
  readonly electionTimeoutMs: number;
  readonly limits: Readonly<Record<string, number>>;
  /** Of the load in the fast run; in a full one all times are stretched to `seconds`. */
  readonly fastSeconds: number;
  readonly seconds: number;
  readonly holdMs: number;
  readonly restMs: number;
  readonly schedule: readonly Step[];
  readonly expect: Expectations;
}
