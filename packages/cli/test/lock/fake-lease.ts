import type { Lease } from "../../src/lock/command-runner.js";

/** A lease whose end the test decides. */
export class FakeLease implements Lease {
  readonly #loss = new AbortController();
  #endMs: number;
  #reason: string | null = null;

  constructor(remainingMs: number) {
    this.#endMs = performance.now() + remainingMs;
  }

  get signal(): AbortSignal {
    return this.#loss.signal;
  }

  remainingMs(): number {
    return this.#reason === null ? Math.max(0, this.#endMs - performance.now()) : 0;
  }

  lossReason(): string | null {
    return this.#reason;
  }

  renew(remainingMs: number): void {
    this.#endMs = performance.now() + remainingMs;
  }

  lose(reason: string): void {
    this.#reason = reason;
    this.#loss.abort();
  }
}
