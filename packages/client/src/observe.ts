/** Who leads, each time it is another: a watch of the lock, and a look at it after each change. */
import type { LockView, Mode } from "@holdfast/lock";
import type { WatchEvent } from "./watch.js";

/** The holder of a lock that is an election's. */
export interface LeaderView {
  readonly token: number;
  readonly session: number;
  readonly mode: Mode;
  /** As its holder gave it. */
  readonly info: string;
}

export interface LookedAt {
  /** The log's entry up to which it is known. */
  readonly index: number;
  readonly lock: LockView | null;
}

/** First who leads now, then each change; null while nobody does. Those that follow fast on one another are told by the last alone. */
export async function* observe(
  changes: AsyncIterableIterator<WatchEvent, undefined, undefined>,
  look: () => Promise<LookedAt>,
): AsyncGenerator<LeaderView | null, void> {
  let seenIndex = -1;
  let told: LeaderView | null | undefined;
  for await (const change of changes) {
    if (change.index <= seenIndex) continue;
    const { index, lock } = await look();
    seenIndex = index;
    const leader = leaderIn(lock);
    if (told !== undefined && isSame(told, leader)) continue;
    told = leader;
    yield leader;
  }
}

function leaderIn(lock: LockView | null): LeaderView | null {
  const holder = lock?.holders[0];
  if (holder === undefined) return null;
  const { token, session, mode, info } = holder;
  return { token, session, mode, info };
}

function isSame(a: LeaderView | null, b: LeaderView | null): boolean {
  return a?.token === b?.token && a?.info === b?.info;
}
