/** Bounds that are part of the replicated rules: every node must have the same, so a change needs a new version of the log's format. */

/**
 * Records kept for a session before it may not acquire any more. An open request counts too: its end is unseen as well.
 * The other commands free something or end something and are never refused; `recordsMax` is their room.
 */
export const unseenMax = 1_024;

/**
 * Records kept for a session in all. Three more for each acquire (a cancel, a release, a setInfo) is more than a client that keeps
 * the rules can have open. Beyond it the oldest record that is over is dropped as if it had been seen.
 */
export const recordsMax: number = 4 * unseenMax;

/** Ranges of seen requests above `settled`. Gaps are open requests, so only a client that skips numbers gets here. */
export const seenRangesMax: number = recordsMax;

/** Ended sessions whose reason is still known: a client that comes back late learns why. Oldest go first. */
export const endedSessionsMax = 1_024;

/** Silence is counted in eighths of the TTL: this many are the whole. */
export const eighthsMax = 8;

/** Holders told in a `notHeld`, which is kept until the client has seen it. */
export const holdersToldMax = 8;

/** Locks in one listing. */
export const listLimitMax = 1_000;

/** Holders and waiters in one listing in all; it ends with `more` when they are used up. */
export const listRowsMax = 10_000;

/** Holders in a view of one lock: every place of the largest semaphore; the readers of a shared lock may be more. */
export const holdersShownMax = 1_024;

/** Holders of each lock in a listing. */
export const listHoldersMax = 16;

/** Letters of names and infos in one listing, which has to fit in a frame: at most 3 bytes each. A single lock may have more. */
export const listLettersMax = 1_000_000;

/** Waiters of each lock in a listing. */
export const listWaitersMax = 4;

/**
 * Former keys whose sequencers are still verified. A sequencer lasts as long as the work that it is handed out for: whoever replaces the key
 * eight times meanwhile wants the old ones to be believed no more (a seed that got out).
 */
export const formerKeysMax = 7;

/** Bytes of a snapshot's piece at most, estimated from above, unless a single record is longer. */
export const pieceBytesMax = 192_000;
