/** One line of JSON per state change, to stdout. */
import { pino, stdSerializers } from "pino";
import type { DestinationStream } from "pino";
import type { Logger } from "./ports.js";

export const logLevels = ["debug", "info", "warn", "error", "silent"] as const;
export type LogLevel = (typeof logLevels)[number];

export interface LoggerOptions {
  /** This node's id; on every line. */
  readonly node: string;
  readonly level: LogLevel;
}

/**
 * Writes synchronously: a transport in a worker thread loses the last lines of a process that ends, and those are the ones that
 * say why. `destination` replaces stdout in tests.
 */
export function createLogger(options: LoggerOptions, destination: DestinationStream = stdoutDestination()): Logger {
  const root = pino(
    {
      level: options.level,
      base: null,
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: stdSerializers.err },
      redact: {
        paths: ["secret", "auth", "authorization", "*.secret", "*.auth", "*.authorization", "headers.authorization"],
        censor: "[redacted]",
      },
    },
    destination,
  );
  return root.child({ node: options.node });
}

function stdoutDestination(): DestinationStream {
  const stdout = pino.destination({ dest: 1, sync: true });
  // A closed pipe (the reader of the log is gone) must not end a node that serves its clients.
  stdout.on("error", () => undefined);
  return stdout;
}
