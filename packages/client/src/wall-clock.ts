/**
 * A clock that runs through a suspend, for runtimes that have none: made of the wall clock, which runs on but may be set, and of the
 * monotonic one, which may stand still in a suspend. What the wall shows beyond the monotonic clock counts as time that has passed; when it
 * is set back, nothing does. So a lease is judged over too early at worst (somebody has set the clock forward), never too late.
 */

/** Below it a wall that falls behind is taken for its coarse steps, which look like that at every turn. Well within the margin of a lease. */
const slackMs = 50;

export function wallBackedMs(wallMs: () => number, monotonicMs: () => number): () => number {
  let passedUnseenMs = 0;
  let aheadMs = wallMs() - monotonicMs();
  return () => {
    const nowMs = monotonicMs();
    const movedMs = wallMs() - nowMs - aheadMs;
    if (movedMs > 0) passedUnseenMs += movedMs;
    // A suspend that follows a clock set back must show from here on.
    if (movedMs > 0 || movedMs < -slackMs) aheadMs += movedMs;
    return nowMs + passedUnseenMs;
  };
}
