/** What every command is made with, and the options that they share. */
import { connect, HoldfastError, InvalidArgumentError } from "@holdfast/client";
import type { ConnectOptions, Holdfast } from "@holdfast/client";
import type { Command } from "commander";
import { CommandFailure } from "./command-failure.js";
import { defaultEndpoints } from "./dev/cluster-file.js";
import { durationFlag } from "./durations.js";
import type { DurationBounds } from "./durations.js";
import type { Io } from "./io.js";
import { withReadiness } from "./readiness.js";

export interface Context {
  readonly io: Io;
  /** What the process ends with; 0 unless a command says otherwise. */
  setExitCode(code: number): void;
}

export interface OutputOptions {
  readonly json?: boolean;
}

export interface ClusterOptions extends OutputOptions {
  readonly endpoints?: string;
  readonly timeout: number;
}

export const dayMs: number = 24 * 3_600_000;
/** The cluster's own bounds. */
export const lockDelayBounds: DurationBounds = { minMs: 0, maxMs: 60_000 };

export function withOutput(command: Command): Command {
  return command.option("--json", "print one JSON document; errors as JSON too");
}

/** For commands that speak to a cluster. */
export function withCluster(command: Command): Command {
  return withOutput(command)
    .option(
      "--endpoints <list>",
      `nodes to speak to, "host:port" with commas (default: HOLDFAST_ENDPOINTS, else ${defaultEndpoints})`,
    )
    .addOption(
      durationFlag(
        "--timeout <duration>",
        "how long the cluster may take to answer",
        { minMs: 1, maxMs: dayMs },
        10_000,
      ),
    );
}

export function endpointsFor(options: ClusterOptions, io: Io): string {
  return options.endpoints ?? (io.environment["HOLDFAST_ENDPOINTS"] || defaultEndpoints);
}

export async function connectFor(options: ClusterOptions, io: Io, more: ConnectOptions = {}): Promise<Holdfast> {
  const endpoints = endpointsFor(options, io);
  try {
    return await connect({ endpoints, connectTimeoutMs: options.timeout, ...more });
  } catch (error) {
    if (error instanceof HoldfastError && error.code === "unreachable") throw await withReadiness(error);
    if (!(error instanceof InvalidArgumentError) || !error.argument.startsWith("endpoints")) throw error;
    const source = options.endpoints === undefined ? "HOLDFAST_ENDPOINTS" : "--endpoints";
    const problem = `${source} ${JSON.stringify(endpoints)} is no list of nodes; write host:port,host:port,...`;
    throw new CommandFailure("usage", error.code, problem);
  }
}

/** Connects, runs `body`, closes. */
export async function withClient<T>(
  options: ClusterOptions,
  io: Io,
  body: (holdfast: Holdfast) => Promise<T>,
): Promise<T> {
  const holdfast = await connectFor(options, io);
  try {
    return await body(holdfast);
  } finally {
    await holdfast.close();
  }
}
