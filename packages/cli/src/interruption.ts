/** SIGINT and SIGTERM at a command that has nothing to put in order: it ends at once, and says so as it says everything else. */
import { constants } from "node:os";
import { CommandFailure } from "./command-failure.js";
import type { SignalSource } from "./lock/signal-relay.js";

const names = ["SIGINT", "SIGTERM"] as const;

/** As `running`, unless a signal comes first: then it rejects with the failure to end with. A second signal ends the process by itself. */
export async function unlessInterrupted<T>(running: Promise<T>, signals: SignalSource): Promise<T> {
  let onSignal: (name: NodeJS.Signals) => void = () => undefined;
  const interrupted = new Promise<never>((_, reject) => {
    onSignal = (name) =>
      reject(new CommandFailure(128 + constants.signals[name], "interrupted", `interrupted by ${name}`));
  });
  for (const name of names) signals.on(name, onSignal);
  try {
    return await Promise.race([running, interrupted]);
  } finally {
    for (const name of names) signals.off(name, onSignal);
  }
}
