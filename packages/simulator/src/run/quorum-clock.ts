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

  /** A majority that runs, hears one another and can write. */
  #isGood(): boolean {
    const { nodes } = this.#world;
    const well = nodes.filter((node) => node.process !== null && !node.process.isPaused && !node.disk.isStalled);
    const isFaultless = well.every((a) => well.every((b) => a === b || !this.#world.isCut(a.id, b.id)));
    return isFaultless && well.length > nodes.length / 2 && this.#world.isNetworkPlain;
  }
}
