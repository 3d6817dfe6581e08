/** Reports to the harness, one JSON line each. Written at once, so that one who stops itself has said so before. */
import { writeSync } from "node:fs";
import { machineMs } from "../clock.js";
import type { Report, UntimedEvent } from "./protocol.js";

type WithoutTime<Said> = Said extends unknown ? Omit<Said, "at"> : never;

export class Reporter {
  event(event: UntimedEvent): void {
    this.tell({ kind: "event", event });
  }

  tell(report: WithoutTime<Report>): void {
    let rest = Buffer.from(`${JSON.stringify({ at: machineMs(), ...report })}\n`);
    while (rest.length > 0) rest = rest.subarray(written(rest));
  }
}

/** The pipe may be full for a moment: then its reader is behind. */
function written(bytes: Buffer): number {
  try {
    return writeSync(1, bytes);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EAGAIN") throw error;
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
    return 0;
  }
}
