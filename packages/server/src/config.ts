/** The configuration file: one for the whole cluster, checked whole, all problems at once, each with its path in the file. */
import { readFile } from "node:fs/promises";
import type { NodeId, RaftLimits } from "@holdfast/raft";
import { parseAddress } from "./address.js";
import type { Address } from "./address.js";
import { crossCheckNodes, crossCheckNumbers, numberLookup } from "./config-checks.js";
import type { NumberLookup } from "./config-checks.js";
import { limitOptions, timingOptions } from "./config-options.js";
import type { NumberOption } from "./config-options.js";
import { checkShape, logLevelProblem } from "./config-schema.js";
import type { ConfigProblem } from "./config-schema.js";
import type { LogLevel } from "./logger.js";

export type { ConfigProblem };

export interface ConfiguredNode {
  readonly id: string;
  /** Advertised, "host:port". */
  readonly peer: string;
  readonly client: string;
  /** Where this node listens; the advertised addresses unless the file says otherwise. */
  readonly listen: { readonly peer: Address; readonly client: Address };
}

export interface Timing {
  readonly heartbeatMs: number;
  /** The minimum: real timeouts are drawn from [this, 2 x this). */
  readonly electionTimeoutMs: number;
  readonly diskStallMs: number;
  readonly ttlMsMin: number;
  readonly ttlMsMax: number;
}

export interface ServerLimits extends RaftLimits {
  /** A snapshot is taken when the log since the last one has so many entries, or so many bytes. */
  readonly snapshotEntries: number;
  readonly snapshotBytes: number;
  /** A leader with more entries that it has not applied takes no acquires. */
  readonly unappliedEntriesMax: number;
  readonly clientConnectionsMax: number;
  /** Requests about locks over HTTP that are open at a node. */
  readonly httpRequestsMax: number;
  readonly sessionsMax: number;
  readonly clientBufferedBytesSlow: number;
  readonly clientBufferedBytesMax: number;
  readonly peerBufferedBytesMax: number;
}

export interface Config {
  readonly cluster: string;
  readonly nodes: readonly ConfiguredNode[];
  readonly timing: Timing;
  readonly limits: ServerLimits;
  readonly logLevel: LogLevel;
  /** Web origins that may use the client port. */
  readonly origins: readonly string[];
}

export class ConfigError extends Error {
  readonly file: string;
  readonly problems: readonly ConfigProblem[];

  constructor(file: string, problems: readonly ConfigProblem[]) {
    const lines = problems.map(({ path, problem }) => `  ${path === "" ? "" : `${path}: `}${problem}`);
    super(`${file} has ${problems.length === 1 ? "a problem" : `${problems.length} problems`}:\n${lines.join("\n")}`);
    this.name = "ConfigError";
    this.file = file;
    this.problems = problems;
  }
}

/** The variables that this module reads. */
export interface ConfigEnvironment {
  readonly HOLDFAST_LOG?: string | undefined;
}

/** What the file holds once nothing is wrong with it; numbers are looked up with their defaults. */
interface RawFile {
  readonly cluster: string;
  readonly nodes: readonly {
    readonly id: string;
    readonly peer: string;
    readonly client: string;
    readonly listen?: { readonly peer?: string; readonly client?: string };
  }[];
  readonly logLevel?: LogLevel;
  readonly origins?: readonly string[];
}

/** Throws a ConfigError with every problem of the text. `file` is its name for the message. */
export function parseConfig(text: string, file: string, environment: ConfigEnvironment = {}): Config {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new ConfigError(file, [
      { path: "", problem: `is not JSON: ${error instanceof Error ? error.message : String(error)}` },
    ]);
  }
  const shapeProblems = checkShape(value);
  const lookup = numberLookup(value, shapeProblems);
  const problems = [...shapeProblems, ...crossCheckNodes(value, shapeProblems), ...crossCheckNumbers(lookup)];
  const logLevel = environment.HOLDFAST_LOG === "" ? undefined : environment.HOLDFAST_LOG;
  const logProblem = logLevel === undefined ? null : logLevelProblem(logLevel);
  if (logProblem !== null) problems.push({ path: "HOLDFAST_LOG", problem: logProblem });
  if (problems.length > 0) throw new ConfigError(file, problems);
  return build(value as RawFile, lookup, (logLevel as LogLevel | undefined) ?? null);
}

/** Reads and parses the file; a file that can't be read is a ConfigError too. */
export async function loadConfig(file: string, environment: ConfigEnvironment = {}): Promise<Config> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    throw new ConfigError(file, [
      { path: "", problem: `can't be read: ${error instanceof Error ? error.message : String(error)}` },
    ]);
  }
  return parseConfig(text, file, environment);
}

function build(raw: RawFile, lookup: NumberLookup, logLevel: LogLevel | null): Config {
  return {
    cluster: raw.cluster,
    nodes: raw.nodes.map(({ id, peer, client, listen }) => ({
      id,
      peer,
      client,
      listen: { peer: checkedAddress(listen?.peer ?? peer), client: checkedAddress(listen?.client ?? client) },
    })),
    timing: numbersFor(timingOptions, lookup),
    limits: numbersFor(limitOptions, lookup),
    logLevel: logLevel ?? raw.logLevel ?? "info",
    origins: raw.origins ?? [],
  };
}

function numbersFor<Name extends string>(
  options: Readonly<Record<Name, NumberOption>>,
  lookup: NumberLookup,
): Record<Name, number> {
  const numbers: Partial<Record<Name, number>> = {};
  for (const name of Object.keys(options) as Name[]) {
    const value = lookup(options[name]);
    if (value === null) throw new Error(`${options[name].path} was checked and has no value`);
    numbers[name] = value;
  }
  return numbers as Record<Name, number>;
}

function checkedAddress(text: string): Address {
  const address = parseAddress(text);
  if (address === null) throw new Error(`${text} was checked and is no address`);
  return address;
}

/** Throws when there is none: who runs a node has looked for it. */
export function nodeFor(config: Config, id: NodeId): ConfiguredNode {
  const node = config.nodes.find((each) => each.id === id);
  if (node === undefined) throw new Error(`the configuration has no node ${id}`);
  return node;
}
