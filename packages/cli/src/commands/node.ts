/** `holdfast node`: one node of a cluster. The server is loaded only here: other commands start faster without it. */
import type { Config } from "@holdfast/server";
import type { Command } from "commander";
import { CommandFailure } from "../command-failure.js";
import { withOutput } from "../context.js";
import type { Context, OutputOptions } from "../context.js";
import { parentPipeVariable } from "../dev/node-process.js";
import { endWithParent } from "../dev/parent-pipe.js";
import { integerOption } from "../durations.js";
import type { Io } from "../io.js";
import { json } from "../output.js";

interface NodeOptions extends OutputOptions {
  readonly config?: string;
  readonly join?: string;
  readonly peer?: string;
  readonly client?: string;
  readonly listenPeer?: string;
  readonly listenClient?: string;
  readonly id?: string;
  readonly data?: string;
  readonly check?: boolean;
  readonly bootstrap?: boolean;
  readonly firstIndex?: number;
}

export function addNodeCommand(program: Command, context: Context): void {
  withOutput(program.command("node"))
    .description("run one node of a cluster")
    .option("--config <file>", "the configuration of the whole cluster")
    .option(
      "--join <list>",
      'instead of --config: nodes of the cluster to join, "host:port" with commas; with --id, --data, --peer and --client',
    )
    .option("--peer <address>", "with --join: where the other nodes reach this one, host:port")
    .option("--client <address>", "with --join: where clients reach this one, host:port")
    .option("--listen-peer <address>", "with --join: where it listens for the other nodes, if not at --peer")
    .option("--listen-client <address>", "with --join: where it listens for clients, if not at --client")
    .option("--id <id>", "which of its nodes this is")
    .option("--data <folder>", "where it keeps its data")
    .option("--check", "check the configuration and end: 0 when it is good, 2 with all its problems")
    .option("--bootstrap", "form a cluster in place of a lost one; needs --first-index")
    .option(
      "--first-index <number>",
      "where its log begins: above every token of the lost one",
      integerOption(1, 2 ** 52),
    )
    .action(async (options: NodeOptions) => {
      if (options.join !== undefined) return context.setExitCode(await runJoining(options, options.join, context.io));
      for (const name of ["peer", "client", "listenPeer", "listenClient"] as const) {
        if (options[name] !== undefined)
          throw usage(
            "--peer, --client, --listen-peer and --listen-client go with --join: a configuration has its own",
          );
      }
      if (options.config === undefined) throw usage("--config is missing: the configuration of the whole cluster");
      const config = await readConfig(options.config, context.io);
      if (options.id !== undefined && !config.nodes.some((node) => node.id === options.id)) {
        throw new CommandFailure(
          "usage",
          "usage",
          `the configuration has no node "${options.id}"; it has ${idsOf(config)}`,
        );
      }
      if (options.check === true) sayGood(options, config, context.io);
      else context.setExitCode(await run(options, config));
    });
}

/** Checks a configuration's text; every problem at once, exit code 2. */
export async function configParser(io: Io): Promise<(text: string, file: string) => Config> {
  const { ConfigError, parseConfig } = await import("@holdfast/server");
  return (text, file) => {
    try {
      return parseConfig(text, file, io.environment);
    } catch (error) {
      if (error instanceof ConfigError) throw new CommandFailure("usage", "invalid_config", error.message);
      throw error;
    }
  };
}

/** Every problem at once, exit code 2. */
export async function readConfig(file: string, io: Io): Promise<Config> {
  const { ConfigError, loadConfig } = await import("@holdfast/server");
  try {
    return await loadConfig(file, io.environment);
  } catch (error) {
    if (error instanceof ConfigError) throw new CommandFailure("usage", "invalid_config", error.message);
    throw error;
  }
}

/** A node that is added to a running cluster: it learns from it what a configuration file would say. */
async function runJoining(options: NodeOptions, endpoints: string, io: Io): Promise<number> {
  const { id, data, peer, client, listenPeer, listenClient } = options;
  for (const name of ["config", "check", "bootstrap", "firstIndex"] as const) {
    if (options[name] !== undefined)
      throw usage(`--join goes with none of --config, --check, --bootstrap, --first-index`);
  }
  if (id === undefined || data === undefined || peer === undefined || client === undefined) {
    throw usage("--join needs --id, --data, --peer and --client");
  }
  const { parseAddress, runJoiningNode } = await import("@holdfast/server");
  const list = endpoints.split(",").map((endpoint) => endpoint.trim());
  for (const address of [...list, peer, client, listenPeer ?? peer, listenClient ?? client]) {
    if (parseAddress(address) === null) throw usage(`${JSON.stringify(address)} is no address: write host:port`);
  }
  const stop = new AbortController();
  if (process.env[parentPipeVariable] === "1") endWithParent(process.stdin, () => stop.abort());
  return runJoiningNode({
    endpoints: list,
    peer,
    client,
    listen: {
      ...(listenPeer === undefined ? {} : { peer: listenPeer }),
      ...(listenClient === undefined ? {} : { client: listenClient }),
    },
    environment: io.environment,
    nodeId: id,
    dataDirectory: data,
    signals: true,
    stop: stop.signal,
    isJson: options.json === true,
  });
}

function usage(message: string): CommandFailure {
  return new CommandFailure("usage", "usage", message);
}

async function run(options: NodeOptions, config: Config): Promise<number> {
  const { id, data, bootstrap = false, firstIndex } = options;
  if (id === undefined) throw new CommandFailure("usage", "usage", `--id is missing: one of ${idsOf(config)}`);
  if (data === undefined)
    throw new CommandFailure("usage", "usage", "--data is missing: where the node keeps its data");
  if (bootstrap !== (firstIndex !== undefined)) {
    throw new CommandFailure("usage", "usage", "--bootstrap and --first-index belong together");
  }
  const { runNode } = await import("@holdfast/server");
  const stop = new AbortController();
  if (process.env[parentPipeVariable] === "1") endWithParent(process.stdin, () => stop.abort());
  return runNode({
    config,
    nodeId: id,
    dataDirectory: data,
    signals: true,
    stop: stop.signal,
    isJson: options.json === true,
    ...(firstIndex === undefined ? {} : { bootstrap: { firstIndex } }),
  });
}

function sayGood(options: NodeOptions, config: Config, io: Io): void {
  const { cluster, nodes } = config;
  if (options.json === true) io.out(json({ valid: true, cluster, nodes: nodes.map(({ id }) => id) }));
  else io.out(`${options.config} is good: cluster ${cluster}, nodes ${idsOf(config)}\n`);
}

function idsOf(config: Config): string {
  return config.nodes.map(({ id }) => id).join(", ");
}
