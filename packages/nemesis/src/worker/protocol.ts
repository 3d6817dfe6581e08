/** What the harness and a worker say to each other: the order on the command line, commands on its input, reports on its output. */
import type { HistoryEvent } from "@holdfast/checker";

type Untimed<Event> = Event extends unknown ? Omit<Event, "at"> : never;

/** An event of the history, before it has its time. */
export type UntimedEvent = Untimed<HistoryEvent>;

export interface WorkerOrder {
  /** Of this life: the client's name in the history. */
  readonly client: string;
  /** `prober`: takes and gives back its own lock all the time, to show when the service answers. */
  readonly role: "worker" | "prober";
  readonly endpoints: readonly string[];
  /** Addresses that nodes tell, and those under which this worker reaches them. */
  readonly addresses: Readonly<Record<string, string>>;
  readonly ttlMs: number;
  readonly locks: readonly string[];
  readonly storeUrl: string | null;
  /** Of its calls; unique in the run. */
  readonly firstCall: number;
  /** How long a lock is held without faults, at most, and how long a worker rests between two. */
  readonly holdMs: number;
  readonly restMs: number;
}

/** What happens between the look at `assertHeld()` and the writes that rest on it. */
export type GateAction =
  | { readonly kind: "stop" }
  /** Its loop is stuck by work. */
  | { readonly kind: "burn"; readonly ms: number }
  /** It waits without a turn of its loop until the harness has stopped it by other means, for so long at most. */
  | { readonly kind: "block"; readonly ms: number }
  /** Goes on at once: what is to happen happens on the way to the store. */
  | { readonly kind: "pass" };

export type Command =
  /** The next time that it stands between a look and a write. */
  | { readonly kind: "gate"; readonly action: GateAction }
  /** Ends what it does, takes no new lock, and closes its client. */
  | { readonly kind: "drain" };

export type Report =
  | { readonly at: number; readonly kind: "event"; readonly event: UntimedEvent }
  /** It stands at the gate and does what it was told. */
  | { readonly at: number; readonly kind: "atGate"; readonly name: string; readonly token: number }
  /** A guarded operation: what came of it. `op` names it in the store's list. */
  | {
      readonly at: number;
      readonly kind: "guarded";
      readonly op: string;
      readonly fromMs: number;
      readonly name: string;
      readonly token: number;
      readonly result: "accepted" | "refused" | "unknown";
    }
  /** The word that keepalives up to `number` have renewed the session has come from this node. */
  | {
      readonly at: number;
      readonly kind: "acknowledgedBy";
      readonly node: string;
      readonly session: number;
      readonly number: number;
    }
  /** It holds a lock, or holds none any more. */
  | { readonly at: number; readonly kind: "holding"; readonly name: string | null }
  /** Its client is closed, nothing is open. */
  | { readonly at: number; readonly kind: "drained" }
  /** Something that is no part of the run: it ends the run as failed. */
  | { readonly at: number; readonly kind: "broken"; readonly problem: string };
