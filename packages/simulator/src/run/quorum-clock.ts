/**
 * Tells the history when a majority is up and hears one another: what is promised only then is judged only then. It is told late, when links
 * have had the time to be made anew, and its end at once.
 */
import type { SimulatedNode } from "../node/simulated-node.js";
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

  /** A majority of each configuration that may be in force, which runs, can write, and of which all hear one another. */
  #isGood(): boolean {
    const world = this.#world;
    if (!world.isNetworkPlain) return false;
    const well = world.members.nodes.filter(({ process, disk, harms }) => {
      return process !== null && !process.isPaused && !disk.isStalled && !harms.has("wipe");
    });
    const hear = (a: SimulatedNode, b: SimulatedNode): boolean => !world.isCut(a.id, b.id) && !world.isCut(b.id, a.id);
    return hasCircle(well, [], hear, (circle) => world.members.isQuorum((node) => circle.includes(node)));
  }
}

/** Whether some of the items that are all friends of one another, and of those of the circle, are enough together with it. */
function hasCircle<Item>(
  items: readonly Item[],
  circle: readonly Item[],
  areFriends: (a: Item, b: Item) => boolean,
  isEnough: (circle: readonly Item[]) => boolean,
): boolean {
  if (isEnough(circle)) return true;
  if (!isEnough([...circle, ...items])) return false;
  return items.some((item, at) => {
    const friends = items.slice(at + 1).filter((other) => areFriends(item, other));
    return hasCircle(friends, [...circle, item], areFriends, isEnough);
  });
}
