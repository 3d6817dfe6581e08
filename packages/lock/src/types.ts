/**
 * The replicated lock machine's commands, outcomes and effects. Words are those of docs/glossary.md.
 * All numbers are safe integers; all durations are milliseconds; names and infos are well-formed strings.
 */

/** A session's id: the index of the entry that opened it. */
export type SessionId = number;
/** A request's number within its session: from 1, rising by one. */
export type RequestNumber = number;
/** A fencing token: the index of the entry that began a generation. */
export type Token = number;

export type Mode = "exclusive" | "shared" | "slot";

/** What every command of a session carries. */
export interface SessionRequest {
  readonly session: SessionId;
  readonly request: RequestNumber;
  /** The client has seen the end of every request below this number. */
  readonly settled: RequestNumber;
  /**
   * Requests from `settled` on whose end the client has seen too. They keep a long wait from holding back the outcomes of
   * thousands of later requests (docs/decisions/001-seen-requests.md).
   */
  readonly seen: readonly RequestNumber[];
}

export type Command =
  /** `key`: 16 random bytes as 32 lower-case hex digits, made by the client. */
  | { readonly kind: "openSession"; readonly key: string; readonly ttlMs: number; readonly info: string }
  | ({ readonly kind: "closeSession" } & SessionRequest)
  | ({
      readonly kind: "acquire";
      /** Sorted by code unit, without duplicates, at least one. */
      readonly names: readonly string[];
      readonly mode: Mode;
      /** Places of a semaphore for mode "slot" (then exactly one name), else 0. */
      readonly slots: number;
      /** False: refuse at once what can't be granted at once. */
      readonly wait: boolean;
      readonly lockDelayMs: number;
      /** 0: no limit. */
      readonly maxHoldMs: number;
      readonly info: string;
    } & SessionRequest)
  /** Frees all names of the acquire `of`; keeps them closed for `afterMs`. */
  | ({ readonly kind: "release"; readonly of: RequestNumber; readonly afterMs: number } & SessionRequest)
  | ({ readonly kind: "cancel"; readonly of: RequestNumber } & SessionRequest)
  | ({ readonly kind: "setInfo"; readonly of: RequestNumber; readonly info: string } & SessionRequest)
  | { readonly kind: "expireSessions"; readonly ids: readonly SessionId[] }
  | { readonly kind: "suspectSessions"; readonly ids: readonly SessionId[]; readonly eighths: number }
  | { readonly kind: "renewSuspects"; readonly ids: readonly SessionId[] }
  | {
      readonly kind: "forceRelease";
      readonly name: string;
      readonly token: Token;
      readonly principal: string;
      readonly lockDelayMs: number;
    }
  | { readonly kind: "endLockDelay"; readonly name: string; readonly index: number }
  | { readonly kind: "endHold"; readonly session: SessionId; readonly of: RequestNumber; readonly token: Token }
  /** Raises the cluster version (versions.ts). */
  | { readonly kind: "setClusterVersion"; readonly version: number }
  /** From now on sequencers are signed with this key (signing-keys.ts). */
  | {
      readonly kind: "setSigningKey";
      readonly id: string;
      readonly publicKey: string;
      readonly seed: string;
      /** The id of the key that it takes the place of; null: there is none. */
      readonly replaces: string | null;
      /** Who asked for it; empty when the leader makes the first one. */
      readonly principal: string;
    };

/** A key that sequencers are, or were, signed with. */
export interface PublicKey {
  readonly id: string;
  readonly publicKey: string;
  /** The index of the entry that set it. */
  readonly since: number;
}

export interface SigningKey extends PublicKey {
  /** Secret. */
  readonly seed: string;
}

/** Why a hold ended otherwise than by its holder's release. */
export type LossReason = "expired" | "forced" | "max_hold" | "closed" | "restored";

/** One name of a granted acquire. `slot` is 0 .. N-1 for mode "slot", else null. */
export interface Grant {
  readonly name: string;
  readonly token: Token;
  readonly slot: number | null;
}

/** Who stands in the way, for people to read. */
export interface HolderView {
  readonly session: SessionId;
  readonly request: RequestNumber;
  readonly token: Token;
  readonly slot: number | null;
  readonly mode: Mode;
  /** The acquire's own info, or the session's where that is empty. */
  readonly info: string;
}

/** The outcome of a request; it stays until the client has seen it. Only `waiting` and `granted` change later. */
export type Outcome =
  /** `ahead`: how many requests stand before it in the longest of its queues. */
  | { readonly kind: "waiting"; readonly ahead: number; readonly holder: HolderView | null }
  | { readonly kind: "granted"; readonly grants: readonly Grant[]; readonly maxHoldMs: number }
  /** Of an acquire whose hold is over otherwise than by a release, or whose wait ended with its session. */
  | { readonly kind: "lost"; readonly reason: LossReason; readonly index: number }
  /** Of an acquire that was released, and of a release that freed something. */
  | { readonly kind: "released" }
  /** Of an acquire that was cancelled before its grant, and of the cancel that did it. */
  | { readonly kind: "cancelled" }
  /** Of a cancel that came after the grant: the client releases. */
  | { readonly kind: "alreadyGranted"; readonly grants: readonly Grant[] }
  /**
   * Of a release of what isn't held (a waiting request is cancelled, not released), and of a cancel or setInfo that found nothing:
   * nothing changed. `holders`, at most 8, says who holds the names now, if the machine still knows the acquire.
   */
  | { readonly kind: "notHeld"; readonly holders: readonly HolderView[] }
  | { readonly kind: "infoSet" }
  | { readonly kind: "sessionClosed" }
  | { readonly kind: "lockHeld"; readonly name: string; readonly holder: HolderView | null }
  /** Free but for a running lock-delay of `delayMs` in all. */
  | { readonly kind: "lockDelayed"; readonly name: string; readonly delayMs: number }
  | { readonly kind: "slotsDiffer"; readonly name: string; readonly slots: number };

/** Answers that are not outcomes: nothing was recorded. */
export type Rejection =
  /** No such session: it never was, or it has ended. `reason` is known of the last 1,024 that ended. */
  | { readonly kind: "sessionGone"; readonly reason: LossReason | null }
  /** The number is settled or was seen: the client knew the outcome once. */
  | { readonly kind: "settled" }
  /**
   * Of an acquire: 1,024 requests of this session are open or unseen. It was not recorded: the same number may be tried again. The other
   * commands have room of their own and are never refused for it.
   */
  | { readonly kind: "tooManyRequests" };

export type Effect =
  /** The answer to openSession; a retry of the key gets the same. */
  | {
      readonly kind: "sessionOpened";
      readonly key: string;
      readonly session: SessionId;
      readonly ttlMs: number;
      readonly isNew: boolean;
    }
  /** The answer to a session's command, and later changes of an acquire's outcome (a grant after waiting, a loss). */
  | {
      readonly kind: "outcome";
      readonly session: SessionId;
      readonly request: RequestNumber;
      readonly outcome: Outcome;
    }
  | {
      readonly kind: "rejected";
      readonly session: SessionId;
      readonly request: RequestNumber;
      readonly rejection: Rejection;
    }
  /** Every hold and wait of it has ended too (those losses come as outcomes before this). */
  | { readonly kind: "sessionEnded"; readonly session: SessionId; readonly reason: LossReason }
  /** The silence count of a living session, after a command that named it (changed or not, once however often it was named). */
  | { readonly kind: "silence"; readonly session: SessionId; readonly count: number; readonly renewed: boolean }
  /** expireSessions named it and changed nothing: no such session, or its silence count was 0. */
  | { readonly kind: "expiryRefused"; readonly session: SessionId }
  /** One for each granted acquire. `token` is that of its first name, which endHold must bear. */
  | {
      readonly kind: "holdBegan";
      readonly session: SessionId;
      readonly of: RequestNumber;
      readonly token: Token;
      readonly maxHoldMs: number;
    }
  /** One for a lock and entry, with the longest delay of the holds that ended there. */
  | { readonly kind: "lockDelayBegan"; readonly name: string; readonly index: number; readonly delayMs: number }
  | { readonly kind: "lockDelayEnded"; readonly name: string; readonly index: number }
  /** The answer to setClusterVersion: the cluster version now, raised by it or not. */
  | { readonly kind: "clusterVersion"; readonly version: number }
  /** The answer to setSigningKey. `isSet`: it is the current key from this entry on; else nothing has changed. */
  | {
      readonly kind: "signingKeySet";
      readonly id: string;
      readonly replaces: string | null;
      readonly principal: string;
      readonly isSet: boolean;
    }
  /** The answer to forceRelease: how many holds it ended, each with all of its names; `holders` when the token was not the current one. */
  | {
      readonly kind: "forced";
      readonly name: string;
      readonly token: Token;
      readonly principal: string;
      readonly ended: number;
      readonly holders: readonly HolderView[];
    }
  /**
   * For watchers: the lock's state changed at this index. `token`: of the hold; for delayEnded the delay's index. A closed session's holds
   * are "released".
   */
  | {
      readonly kind: "changed";
      readonly name: string;
      readonly change: "granted" | "released" | "lost" | "delayEnded" | "info";
      readonly token: Token;
      readonly slot: number | null;
    };

export interface WaiterView {
  readonly session: SessionId;
  readonly request: RequestNumber;
  readonly mode: Mode;
  readonly info: string;
  /** All names this request waits for. */
  readonly names: readonly string[];
  /** First here, still waiting elsewhere: it keeps the name from others. */
  readonly reserves: boolean;
}

export interface LockView {
  readonly name: string;
  /** Null when nobody holds it. */
  readonly mode: Mode | null;
  /** N of a semaphore, else 0. */
  readonly slots: number;
  readonly holders: readonly HolderView[];
  /** Holders in all: `holders` shows the first ones only. */
  readonly holderCount: number;
  readonly waiters: readonly WaiterView[];
  /** Waiters in all: `waiters` shows the first ones only. */
  readonly waiterCount: number;
  readonly delays: readonly { readonly index: number; readonly delayMs: number; readonly slot: number | null }[];
}

export interface SessionView {
  readonly id: SessionId;
  readonly ttlMs: number;
  readonly info: string;
  readonly silence: number;
  readonly holds: number;
  readonly waits: number;
}

/** A holding of one name: what a sequencer says. */
export interface HoldingView {
  readonly name: string;
  readonly mode: Mode;
  readonly slot: number | null;
  readonly token: Token;
}

/** What a client reconciles with on a resumed connection. */
export interface ResumeView {
  readonly session: SessionId;
  readonly ttlMs: number;
  readonly holds: readonly {
    readonly request: RequestNumber;
    readonly grants: readonly Grant[];
    readonly maxHoldMs: number;
  }[];
  readonly waiting: readonly RequestNumber[];
  /** Outcomes that the client has not yet seen, but for `waiting` and `granted` ones. */
  readonly outcomes: readonly { readonly request: RequestNumber; readonly outcome: Outcome }[];
}
