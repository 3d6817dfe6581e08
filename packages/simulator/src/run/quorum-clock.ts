/**
 * Tells the history when a majority is up and hears one another: what is promised only then is judged only then. It is told late, when links
 * have had the time to be made anew, and its end at once.
 */
import type { World } from "./world.js";

/** Peers dial a lost one again within a second. */
const redialMs = 1_200;

export class QuorumClock {
  readonly #world: World;
  #isTold = false;
  #goodSinceMs: number | null = null;

  constructor(world: World) {
    this.#world = world;
    this.#watch();
  }

  /** Something has changed that may take a majority away. */
  note(): void {
    const isGood = this.#isGood();
    if (isGood) this.#goodSinceMs ??= this.#world.nowMs;
    else this.#goodSinceMs = null;
    const settleMs = redialMs + 2 * this.#world.plan.timing.electionTimeoutMs;
    const isUp = this.#goodSinceMs !== null && this.#world.nowMs - this.#goodSinceMs >= settleMs;
    if (isUp === this.#isTold) return;
    this.#isTold = isUp;
    this.#world.recorder.emit({ kind: "quorum", up: isUp });
  }

  /** Pauses and disks have no event of their own here. */
  #watch(): void {
    this.#world.scheduler.after(this.#world.plan.timing.electionTimeoutMs / 5, "quorum", () => {
      this.note();
      this.#watch();
    });
  }

  /** A majority that runs, can write, and of which all hear one another. */
  #isGood(): boolean {
    const world = this.#world;
    const well = world.nodes.filter(({ process, disk }) => process !== null && !process.isPaused && !disk.isStalled);
    const majority = Math.floor(world.nodes.length / 2) + 1;
    return (
      world.isNetworkPlain && hasCircle(well, majority, (a, b) => !world.isCut(a.id, b.id) && !world.isCut(b.id, a.id))
    );
  }
}

/** Whether `size` of the items are friends of one another. */
function hasCircle<Item>(items: readonly Item[], size: number, areFriends: (a: Item, b: Item) => boolean): boolean {
  if (size === 0) return true;
  return items.some((item, at) => {
    const friends = items.slice(at + 1).filter((other) => areFriends(item, other));
    return friends.length >= size - 1 && hasCircle(friends, size - 1, areFriends);
  });
}
