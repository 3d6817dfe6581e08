import { RequestRefusal, problem } from "./problem.js";
import { retryAfter } from "./sequencer-header.js";

/** One call at a time for each resource, in the order in which they came. A turn ends when its call has settled, and never before. */
export class TurnQueue {
  readonly #waitingMax: number;
  /** Those that wait behind the one whose turn it is. */
  readonly #waiting = new Map<string, (() => void)[]>();

  constructor(waitingMax: number) {
    this.#waitingMax = waitingMax;
  }

  /** Rejects with RequestRefusal when too many wait. */
  async take<T>(resource: string, call: () => Promise<T>): Promise<T> {
    const waiting = this.#waiting.get(resource);
    if (waiting === undefined) {
      this.#waiting.set(resource, []);
    } else {
      if (waiting.length >= this.#waitingMax) throw refusal(this.#waitingMax);
      await new Promise<void>((resolve) => waiting.push(resolve));
    }
    try {
      return await call();
    } finally {
      const next = this.#waiting.get(resource)?.shift();
      if (next === undefined) this.#waiting.delete(resource);
      else next();
    }
  }
}

function refusal(waitingMax: number): RequestRefusal {
  const detail = `${waitingMax} requests wait for this resource already`;
  return new RequestRefusal(problem(503, { code: "overloaded", detail, retryable: true }, retryAfter));
}
