/**
 * What the replicated log says, and what a node's lock machine says of it: a neutral shape, made for histories. It leaves out what is for
 * people to read (infos, holders in the way, places in the queue). A producer may hand over objects that have more fields: they are passed
 * over.
 *
 * Numbers are safe integers, durations milliseconds.
 */

export type Mode = "exclusive" | "shared" | "slot";

export type LossReason = "expired" | "forced" | "max_hold" | "closed" | "restored";

/** One name of a granted acquire. `slot`: the place of a semaphore, from 0; else null. */
export interface Grant {
  readonly name: string;
  readonly token: number;
  readonly slot: number | null;
}

/** What every command of a session carries. */
export interface NumberedRequest {
  /** The index of the entry that opened the session. */
  readonly session: number;
  readonly request: number;
  /** The client has seen the end of every request below this number ... */
  readonly settled: number;
  /** ... and of these. */
  readonly seen: readonly number[];
}

export type LogCommand =
  | { readonly kind: "openSession"; readonly key: string; readonly ttlMs: number }
  | ({ readonly kind: "closeSession" } & NumberedRequest)
  | ({
      readonly kind: "acquire";
      /** At least one. */
      readonly names: readonly string[];
      readonly mode: Mode;
      /** Places of a semaphore for mode "slot", else 0. */
      readonly slots: number;
      readonly wait: boolean;
      readonly lockDelayMs: number;
      /** 0: no limit. */
      readonly maxHoldMs: number;
    } & NumberedRequest)
  | ({ readonly kind: "release"; readonly of: number; readonly afterMs: number } & NumberedRequest)
  | ({ readonly kind: "cancel"; readonly of: number } & NumberedRequest)
  | ({ readonly kind: "setInfo"; readonly of: number } & NumberedRequest)
  | { readonly kind: "expireSessions"; readonly ids: readonly number[] }
  | { readonly kind: "suspectSessions"; readonly ids: readonly number[]; readonly eighths: number }
  | { readonly kind: "renewSuspects"; readonly ids: readonly number[] }
  | { readonly kind: "forceRelease"; readonly name: string; readonly token: number; readonly lockDelayMs: number }
  | { readonly kind: "endLockDelay"; readonly name: string; readonly index: number }
  | { readonly kind: "endHold"; readonly session: number; readonly of: number; readonly token: number }
  | { readonly kind: "setClusterVersion"; readonly version: number }
  /** `replaces`: the id of the key whose place it takes; null: there is none. */
  | { readonly kind: "setSigningKey"; readonly id: string; readonly replaces: string | null };

export type LogEntry =
  | { readonly kind: "noop" }
  | { readonly kind: "configuration" }
  | { readonly kind: "command"; readonly command: LogCommand };

/** What became of a request. Of these only `waiting` and `granted` change later. */
export type Outcome =
  | { readonly kind: "waiting" }
  | { readonly kind: "granted"; readonly grants: readonly Grant[]; readonly maxHoldMs: number }
  /** Of an acquire whose hold or wait ended otherwise than by its client's release or cancel; `index`: of the entry that ended it. */
  | { readonly kind: "lost"; readonly reason: LossReason; readonly index: number }
  | { readonly kind: "released" }
  | { readonly kind: "cancelled" }
  | { readonly kind: "alreadyGranted"; readonly grants: readonly Grant[] }
  | { readonly kind: "notHeld" }
  | { readonly kind: "infoSet" }
  | { readonly kind: "sessionClosed" }
  | { readonly kind: "lockHeld"; readonly name: string }
  | { readonly kind: "lockDelayed"; readonly name: string }
  | { readonly kind: "slotsDiffer"; readonly name: string; readonly slots: number };

/** Answers that leave nothing behind. */
export type Rejection =
  | { readonly kind: "sessionGone"; readonly reason: LossReason | null }
  | { readonly kind: "settled" }
  | { readonly kind: "tooManyRequests" };

/** What a lock machine said when it applied an entry. Their order within an entry is not judged. */
export type Effect =
  | {
      readonly kind: "sessionOpened";
      readonly key: string;
      readonly session: number;
      readonly ttlMs: number;
      readonly isNew: boolean;
    }
  | { readonly kind: "outcome"; readonly session: number; readonly request: number; readonly outcome: Outcome }
  | { readonly kind: "rejected"; readonly session: number; readonly request: number; readonly rejection: Rejection }
  | { readonly kind: "sessionEnded"; readonly session: number; readonly reason: LossReason }
  | { readonly kind: "silence"; readonly session: number; readonly count: number; readonly renewed: boolean }
  | { readonly kind: "expiryRefused"; readonly session: number }
  /** One for each granted acquire; `token`: of its first name. */
  | {
      readonly kind: "holdBegan";
      readonly session: number;
      readonly of: number;
      readonly token: number;
      readonly maxHoldMs: number;
    }
  | { readonly kind: "lockDelayBegan"; readonly name: string; readonly index: number; readonly delayMs: number }
  | { readonly kind: "lockDelayEnded"; readonly name: string; readonly index: number }
  | { readonly kind: "forced"; readonly name: string; readonly token: number; readonly ended: number }
  | { readonly kind: "clusterVersion"; readonly version: number }
  | {
      readonly kind: "signingKeySet";
      readonly id: string;
      readonly replaces: string | null;
      readonly isSet: boolean;
    }
  /** For watchers; follows from the others and is not judged. */
  | { readonly kind: "changed" };
