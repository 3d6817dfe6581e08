/**
 * Callers' AbortSignals: one listener for each signal, however many acquires it can end. A signal may live as long as the process and serve
 * a thousand waits at once: a listener each would cost time, and Node warns of more than ten as of a leak.
 */
import type { Acquire } from "./acquire.js";

interface Listened {
  readonly acquires: Set<Acquire>;
  readonly listener: () => void;
}

export class AbortListeners {
  private readonly signals = new Map<AbortSignal, Listened>();
  private readonly onAbort: (acquire: Acquire, reason: unknown) => void;

  constructor(onAbort: (acquire: Acquire, reason: unknown) => void) {
    this.onAbort = onAbort;
  }

  add(acquire: Acquire): void {
    const { signal } = acquire.request;
    if (signal === null) return;
    const known = this.signals.get(signal);
    if (known !== undefined) {
      known.acquires.add(acquire);
      return;
    }
    const acquires = new Set([acquire]);
    const listener = (): void => {
      this.signals.delete(signal);
      for (const each of acquires) this.onAbort(each, signal.reason);
    };
    signal.addEventListener("abort", listener, { once: true });
    this.signals.set(signal, { acquires, listener });
  }

  /** It can be given up no more. */
  delete(acquire: Acquire): void {
    const { signal } = acquire.request;
    const listened = signal === null ? undefined : this.signals.get(signal);
    if (signal === null || listened === undefined) return;
    listened.acquires.delete(acquire);
    if (listened.acquires.size > 0) return;
    this.signals.delete(signal);
    signal.removeEventListener("abort", listened.listener);
  }
}
