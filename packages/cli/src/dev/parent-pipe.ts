/** The node's side of the pipe to `holdfast dev`: when it closes, the parent has ended, and so does the node. */
import type { Readable } from "node:stream";

/** An orderly stop needs the other nodes, which end at the same moment: it gets this long. */
const stopLimitMs = 5_000;

/** Calls `stop`; ends the process after a while if that didn't. */
export function endWithParent(pipe: Readable, stop: () => void): void {
  let isEnding = false;
  const end = (): void => {
    if (isEnding) return;
    isEnding = true;
    setTimeout(() => process.exit(1), stopLimitMs).unref();
    stop();
  };
  pipe.on("end", end);
  pipe.on("error", end);
  pipe.on("close", end);
  pipe.resume();
}
