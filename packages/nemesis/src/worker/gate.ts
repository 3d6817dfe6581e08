/** Between the look at `assertHeld()` and the write: where a stop does harm. A random one almost never falls there. */
import type { GateAction } from "./protocol.js";
import type { Reporter } from "./reporter.js";

export class Gate {
  private readonly reporter: Reporter;
  private action: GateAction | null = null;

  constructor(reporter: Reporter) {
    this.reporter = reporter;
  }

  arm(action: GateAction): void {
    this.action = action;
  }

  /** No turn of the loop comes between the look before and the write after, whatever happens here. */
  pass(name: string, token: number): void {
    const { action } = this;
    if (action === null) return;
    this.action = null;
    this.reporter.tell({ kind: "atGate", name, token });
    switch (action.kind) {
      case "stop":
        // The harness lets it go on.
        process.kill(process.pid, "SIGSTOP");
        return;
      case "burn":
        burn(action.ms);
        return;
      case "block":
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, action.ms);
        return;
      case "pass":
        return;
      default:
        return action satisfies never;
    }
  }
}

/** As a long parse, or a regular expression that backtracks. */
function burn(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}
