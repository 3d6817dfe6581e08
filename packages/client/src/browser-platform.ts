/** A browser has no environment, no channels and no context that follows a call through its awaits. */
import { HoldfastError } from "./errors.js";
import type { DiagnosticsChannel } from "./diagnostics.js";
import type { Fence, Lock } from "./lock.js";
import type { Platform } from "./platform.js";

const silentChannel: DiagnosticsChannel = { hasSubscribers: false, publish: () => undefined };

export function browserPlatform(): Platform {
  return {
    endpoints: "",
    // A page and its workers have one; other runtimes with this entry may not.
    info: `browser:${(globalThis as { location?: { host: string } }).location?.host ?? ""}`,
    context: { run: (_lock, body) => body() },
    channel: () => silentChannel,
  };
}

/** Always throws: null would say that no lock is held here, which nobody knows. */
export function currentLock(): Lock | null {
  throw noContext("currentLock()");
}

/** Always throws, with incompatible: see currentLock(). */
export function currentFence(_name?: string): Fence {
  throw noContext("currentFence()");
}

function noContext(what: string): HoldfastError {
  const problem = `${what} needs AsyncLocalStorage, which browsers don't have: hand the lock on instead`;
  return new HoldfastError("incompatible", problem);
}
