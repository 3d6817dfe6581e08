/** What a runtime offers beside clocks, chance and sockets: Node's is node-platform.ts, a browser's browser-platform.ts. */
import type { DiagnosticsChannel } from "./diagnostics.js";
import type { Lock } from "./lock.js";

/** The lock under which code runs, for code that isn't handed it. */
export interface LockContext {
  run<T>(lock: Lock, body: () => T): T;
}

export interface Platform {
  /** Where connect looks without endpoints; "": nowhere. */
  readonly endpoints: string;
  /** Whom people shall look for at the holder of a lock. */
  readonly info: string;
  readonly context: LockContext;
  readonly channel: (name: string) => DiagnosticsChannel;
}
