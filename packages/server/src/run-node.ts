/** One node as a process: everything is put together here, and taken apart in order. */
import { readFile } from "node:fs/promises";
import { errorCodeFor, exitCodes } from "./exit-codes.js";
import type { ExitName } from "./exit-codes.js";
import type { Config, ConfigEnvironment } from "./config.js";
import { askForCluster, prepareJoin, watchCluster } from "./joining.js";
import type { JoinOptions } from "./joining.js";
import { createLogger, logLevels } from "./logger.js";
import type { LogLevel } from "./logger.js";
import { NodeProcess } from "./node-process.js";
import { createNodeWorld } from "./node-world.js";
import type { Ending } from "./endings.js";
import type { Logger } from "./ports.js";

export interface RunNodeOptions {
  readonly config: Config;
  readonly nodeId: string;
  readonly dataDirectory: string;
  /** Forms a cluster whose log begins above the fences of one that was lost. Only for a directory that is not formed yet. */
  readonly bootstrap?: { readonly firstIndex: number };
  /**
   * The process is this node's own: SIGTERM and SIGINT stop it, a second one at once; an error that nobody caught ends it. False for a
   * caller that looks after all that itself.
   */
  readonly signals: boolean;
  /** Aborted: stop in order, as for SIGTERM. */
  readonly stop?: AbortSignal;
  /** Where it is said why the node ended by itself; process.stderr unless a test listens. */
  readonly writeError?: (text: string) => void;
  /** Said as `{"error":{"code","message"}}` there, not as a sentence. */
  readonly isJson?: boolean;
  readonly logger?: Logger;
}

/** A node that has no configuration file: it asks the cluster that it is to join. */
export interface RunJoiningNodeOptions extends Omit<RunNodeOptions, "config" | "bootstrap">, JoinOptions {}

/** As runNode, once a node of the cluster has answered. */
export async function runJoiningNode(options: RunJoiningNodeOptions): Promise<number> {
  const { nodeId, environment, stop = new AbortController().signal } = options;
  const logger = options.logger ?? createLogger({ node: nodeId, level: levelIn(environment) });
  const parts = { logger, stop, ask: askForCluster };
  const joining = await prepareJoin(options, parts).catch((error: unknown): Ending => {
    const problem = error instanceof Error ? error.message : String(error);
    return {
      exit: "storage",
      sentence: `the data directory ${options.dataDirectory} can't be prepared: ${problem}`,
      error,
    };
  });
  if (joining === null) return exitCodes.ok.code;
  if ("exit" in joining) return sayEnding(joining, logger, sayer(options, logger));
  const { config, clusterId } = joining;
  return run({ ...options, config, logger }, { clusterId, endpoints: options.endpoints });
}

function levelIn({ HOLDFAST_LOG: level }: ConfigEnvironment): LogLevel {
  return logLevels.find((each) => each === level) ?? "info";
}

type Say = (exit: ExitName, sentence: string, error?: unknown) => number;

/** Says to the log and at stderr why a node ends. */
function sayer(
  { nodeId, writeError, isJson = false }: Pick<RunNodeOptions, "nodeId" | "writeError" | "isJson">,
  logger: Logger,
): Say {
  const write = writeError ?? ((text) => process.stderr.write(text));
  return (exit, sentence, error) => {
    const { code } = exitCodes[exit];
    logger.error({ reason: exit, code, ...(error === undefined ? {} : { err: error }) }, sentence);
    const message = `${nodeId}: ${sentence}`;
    write(isJson ? `${JSON.stringify({ error: { code: errorCodeFor(exit), message } })}\n` : `holdfast: ${message}\n`);
    return code;
  };
}

/** Resolves with the exit code when the node has ended, its directory closed. Never rejects. */
export function runNode(options: RunNodeOptions): Promise<number> {
  return run(options, null);
}

/** A running cluster that a node waits to be added to, unless it belongs to it already. */
interface Joined {
  readonly clusterId: string;
  readonly endpoints: readonly string[];
}

async function run(options: RunNodeOptions, joined: Joined | null): Promise<number> {
  const { config, nodeId } = options;
  const logger = options.logger ?? createLogger({ node: nodeId, level: config.logLevel });
  const say = sayer(options, logger);
  const problem = argumentProblem(options);
  if (problem !== null) return say("usage", problem);
  const joins = joined === null ? {} : { joins: joined.clusterId };
  const node = new NodeProcess({ ...options, ...joins, version: await readVersion() }, logger, createNodeWorld(logger));
  const undo = options.signals ? handleSignals(node, logger, say) : () => undefined;
  options.stop?.addEventListener("abort", () => node.end({ exit: "ok", sentence: null }), { once: true });
  if (options.stop?.aborted === true) node.end({ exit: "ok", sentence: null });
  const watching = new AbortController();
  const watch = joined === null ? null : watchCluster(joined, { ask: askForCluster, stop: watching.signal }, node);
  const ending = await node.run();
  watching.abort();
  await watch;
  undo();
  return sayEnding(ending, logger, say);
}

function sayEnding(ending: Ending, logger: Logger, say: Say): number {
  if (ending.sentence !== null) return say(ending.exit, ending.sentence, ending.error);
  logger.info({ code: exitCodes[ending.exit].code }, "stopped");
  return exitCodes[ending.exit].code;
}

function argumentProblem(options: RunNodeOptions): string | null {
  const { config, nodeId, bootstrap } = options;
  if (!config.nodes.some((node) => node.id === nodeId)) {
    return `the configuration has no node ${JSON.stringify(nodeId)}; it has ${config.nodes.map((node) => node.id).join(", ")}`;
  }
  const firstIndex = bootstrap?.firstIndex ?? 1;
  if (!Number.isSafeInteger(firstIndex) || firstIndex < 1 || firstIndex > Number.MAX_SAFE_INTEGER / 2) {
    return `--first-index ${firstIndex} is not a whole number from 1 to ${Math.floor(Number.MAX_SAFE_INTEGER / 2)}`;
  }
  return null;
}

async function readVersion(): Promise<string> {
  const text = await readFile(new URL("../../package.json", import.meta.url), "utf8");
  const { version } = JSON.parse(text) as { readonly version: string };
  return version;
}

/** Returns how to take the handlers away again. */
function handleSignals(node: NodeProcess, logger: Logger, say: Say): () => void {
  let isStopping = false;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (isStopping) process.exit(exitCodes[signal === "SIGINT" ? "interrupted" : "terminated"].code);
    isStopping = true;
    logger.info({ signal }, `${signal}: stopping in order; a second signal ends the process at once`);
    node.end({ exit: "ok", sentence: null });
  };
  // What nobody caught may have left anything half done: nothing more is written, sent or answered.
  const onUncaught = (error: unknown): void => {
    process.exit(
      say("internal", `an unexpected error: ${error instanceof Error ? error.message : String(error)}`, error),
    );
  };
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
  process.on("uncaughtException", onUncaught);
  process.on("unhandledRejection", onUncaught);
  return () => {
    process.off("SIGTERM", onSignal);
    process.off("SIGINT", onSignal);
    process.off("uncaughtException", onUncaught);
    process.off("unhandledRejection", onUncaught);
  };
}
