/** Tells once for each wait that it is a wait for the cluster, not for the lock. */
import type { Logger } from "@holdfast/client";

const noteAfterMs = 2_000;

/** Listens to what the client logs: whether it has a leader is said nowhere else without asking the nodes. */
export class LeaderNote {
  readonly logger: Logger;
  readonly #tell: () => void;
  readonly #afterMs: number;
  #timer: NodeJS.Timeout | null = null;
  #isOver = false;
  #hasLeader = false;

  constructor(tell: () => void, afterMs: number = noteAfterMs) {
    this.#tell = tell;
    this.#afterMs = afterMs;
    const ignore = (): void => undefined;
    this.logger = {
      debug: ignore,
      info: (_, message) => this.#onInfo(message),
      warn: ignore,
      error: ignore,
    };
    this.#arm();
  }

  /** Another wait begins. */
  start(): void {
    this.#isOver = false;
    if (!this.#hasLeader) this.#arm();
  }

  /** The lock is obtained, or no longer waited for. */
  cancel(): void {
    this.#isOver = true;
    this.#disarm();
  }

  #onInfo(message: string | undefined): void {
    if (message !== "leader found" && message !== "leader lost") return;
    this.#hasLeader = message === "leader found";
    if (this.#hasLeader) this.#disarm();
    else this.#arm();
  }

  #arm(): void {
    if (this.#isOver || this.#timer !== null) return;
    this.#timer = setTimeout(() => {
      this.cancel();
      this.#tell();
    }, this.#afterMs);
    this.#timer.unref();
  }

  #disarm(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }
}
