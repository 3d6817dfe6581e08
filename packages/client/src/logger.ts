/** A logger that can't harm: it may be missing, and what it throws stays with it. */
import type { Logger } from "./ports.js";

const silentLogger: Logger = { debug: ignore, info: ignore, warn: ignore, error: ignore };

export function guardedLogger(logger: Logger | undefined): Logger {
  if (logger === undefined) return silentLogger;
  return {
    debug: (facts, text) => attempt(() => logger.debug(facts, text)),
    info: (facts, text) => attempt(() => logger.info(facts, text)),
    warn: (facts, text) => attempt(() => logger.warn(facts, text)),
    error: (facts, text) => attempt(() => logger.error(facts, text)),
  };
}

function attempt(log: () => void): void {
  try {
    log();
  } catch {
    // A full disk under the log must not cost a lock.
  }
}

function ignore(): void {}
