/** Signals that this process gets while it waits for a lock or runs a command under one. */
import { constants } from "node:os";
import { CommandFailure } from "../command-failure.js";

const relayed = ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"] as const;
const ending: ReadonlySet<NodeJS.Signals> = new Set(["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"]);

/** Where signals come from; `process` but in tests. */
export interface SignalSource {
  on(name: NodeJS.Signals, listener: (name: NodeJS.Signals) => void): unknown;
  off(name: NodeJS.Signals, listener: (name: NodeJS.Signals) => void): unknown;
}

export class SignalRelay {
  /** Aborts at the first signal that asks to end, with the failure to end with. What already runs is told by `to`, and ends as it likes. */
  readonly waiting: AbortSignal;
  readonly #controller = new AbortController();
  readonly #source: SignalSource;
  #forward: ((name: NodeJS.Signals) => void) | null = null;

  constructor(source: SignalSource) {
    this.waiting = this.#controller.signal;
    this.#source = source;
    for (const name of relayed) source.on(name, this.#onSignal);
  }

  /** From now on signals go to the command; to none with null. */
  to(forward: ((name: NodeJS.Signals) => void) | null): void {
    this.#forward = forward;
  }

  close(): void {
    for (const name of relayed) this.#source.off(name, this.#onSignal);
  }

  readonly #onSignal = (name: NodeJS.Signals): void => {
    this.#forward?.(name);
    if (ending.has(name)) {
      const code = 128 + constants.signals[name];
      this.#controller.abort(new CommandFailure(code, "interrupted", `interrupted by ${name} while waiting`));
    }
  };
}
