/**
 * How a node with an empty directory finds the cluster that it is to join: it asks any node of it for what a configuration file would say,
 * and keeps the answer in its directory, for it must start without the others too. Who it is, and that it waits, is all that the cluster
 * has to know; then it is added as a member, and a member hands it what its log begins with (formation.ts).
 */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Configuration, Member, NodeId } from "@holdfast/raft";
import { assertEmpty, DirectoryNotEmptyError, prepareDirectory, readFileIfThere, replaceFile } from "@holdfast/storage";
import { limitOptions, timingOptions } from "./config-options.js";
import { ConfigError, parseConfig } from "./config.js";
import type { Config, ConfigEnvironment } from "./config.js";
import { removedFromCluster, replacedInCluster } from "./endings.js";
import type { Ending } from "./endings.js";
import { getJson } from "./http-get.js";
import type { Logger } from "./ports.js";

/** What a node of a running cluster tells one that wants to join (`/v1/cluster`). */
export interface ClusterFacts {
  /** The name in the configuration files. */
  readonly cluster: string;
  readonly clusterId: string;
  readonly timing: Readonly<Record<string, number>>;
  readonly limits: Readonly<Record<string, number>>;
  /** Known to be committed, as the members are: neither is ever taken back. */
  readonly removed: readonly NodeId[];
  /** Each with the instance of its directory. */
  readonly members: readonly MemberName[];
}

export type MemberName = Pick<Member, "id" | "instance">;

/** What any node tells whoever adds it (`/v1/identity`). */
export interface NodeIdentity {
  readonly id: NodeId;
  readonly instance: string;
  /** Advertised, "host:port". */
  readonly peer: string;
  readonly client: string;
  /** Of its cluster, or of the one that it waits to join; null when it knows none. */
  readonly clusterId: string | null;
}

export interface JoinOptions {
  readonly nodeId: string;
  readonly dataDirectory: string;
  /** Client addresses of nodes of the cluster. */
  readonly endpoints: readonly string[];
  /** Where the others and the clients will reach this node, "host:port". */
  readonly peer: string;
  readonly client: string;
  /** Where it listens, "host:port", if that is elsewhere; each start may say something else. */
  readonly listen?: { readonly peer?: string; readonly client?: string };
  readonly environment: ConfigEnvironment;
}

export interface JoinParts {
  readonly logger: Logger;
  readonly stop: AbortSignal;
  ask(endpoint: string, stop: AbortSignal): Promise<ClusterFacts>;
}

/** A node that waits to be added. */
export interface WaitingNode {
  /** Until it belongs to the cluster, or ends. */
  readonly isWaiting: boolean;
  /** A node of its cluster has said so. */
  hearOfCluster(facts: ClusterFacts): void;
}

/** The cluster to be joined, and the configuration that this node runs with: its own addresses, and the cluster's settings. */
export interface Joining {
  readonly clusterId: string;
  readonly config: Config;
}

const joinedFile = "joined.json";
const formatVersion = 1;
const retryMs = 1_000;
const answerMs = 10_000;

/** `committed`: the newest configuration that is known to be. */
export function clusterFactsOf(config: Config, clusterId: string, committed: Configuration): ClusterFacts {
  const { cluster, timing, limits } = config;
  const { voters, outgoing, learners, removed } = committed;
  const members = [...voters, ...outgoing, ...learners].map(({ id, instance }) => ({ id, instance }));
  return { cluster, clusterId, timing: { ...timing }, limits: { ...limits }, removed, members };
}

/** Why this node can never be added; null while it can. */
export function exclusionIn({ removed, members }: ClusterFacts, { id, instance }: MemberName): Ending | null {
  if (removed.includes(id)) return removedFromCluster(id);
  const named = members.filter((member) => member.id === id);
  const [other] = named;
  if (other === undefined || named.some((member) => member.instance === instance)) return null;
  return replacedInCluster(id, instance, other.instance);
}

/**
 * Goes on asking while the node waits. Who was added and removed again, or whose place was given to another directory, before any member had
 * called it, is called by nobody any more. Resolves when the node waits no longer, or shall stop; all nodes are asked, for any may be behind.
 */
export async function watchCluster(
  { endpoints, clusterId }: { readonly endpoints: readonly string[]; readonly clusterId: string },
  { ask, stop }: Pick<JoinParts, "ask" | "stop">,
  node: WaitingNode,
): Promise<void> {
  while (node.isWaiting && !stop.aborted) {
    await Promise.all(
      endpoints.map(async (endpoint) => {
        const facts = await ask(endpoint, stop).catch(() => null);
        if (facts?.clusterId === clusterId && node.isWaiting) node.hearOfCluster(facts);
      }),
    );
    await sleep(retryMs, undefined, { signal: stop }).catch(() => undefined);
  }
}

/** Resolves with an ending when this node can't join; null when it was asked to stop first. Rejects on a storage error. */
export async function prepareJoin(options: JoinOptions, parts: JoinParts): Promise<Joining | Ending | null> {
  const directory = await prepareDirectory(options.dataDirectory);
  const path = join(directory, joinedFile);
  const kept = await readFileIfThere(path);
  if (kept !== null) return checked(options, kept.toString("utf8"), path);
  const problem = await problemWithNew(directory);
  if (problem !== null) return { exit: "usage", sentence: problem };
  const facts = await findCluster(options, parts);
  if (facts === null) return null;
  if (facts.removed.includes(options.nodeId)) {
    const sentence = `${options.nodeId} was removed from this cluster, and an id never comes back: choose another`;
    return { exit: "removed", sentence };
  }
  const text = `${JSON.stringify({ formatVersion, clusterId: facts.clusterId, config: configFor(options, facts) })}\n`;
  const joining = checked(options, text, "the cluster's answer");
  if ("clusterId" in joining) await replaceFile(path, Buffer.from(text));
  return joining;
}

/** What is there already may be another node's, or this one's promises to another cluster. */
async function problemWithNew(directory: string): Promise<string | null> {
  // Left by a first start that was cut off.
  await rm(join(directory, `${joinedFile}.tmp`), { force: true });
  try {
    await assertEmpty(directory);
    return null;
  } catch (error) {
    if (!(error instanceof DirectoryNotEmptyError)) throw error;
    return `${error.message}; a node that joins begins with an empty directory, and one that was begun with --config goes on with it`;
  }
}

/** A whole configuration file, with this node alone: who else is a member stands in the cluster's log. */
function configFor({ nodeId, peer, client }: JoinOptions, facts: ClusterFacts): object {
  const known = (numbers: Readonly<Record<string, number>>, names: object): object =>
    Object.fromEntries(Object.entries(numbers).filter(([name]) => Object.hasOwn(names, name)));
  return {
    cluster: facts.cluster,
    nodes: [{ id: nodeId, peer, client }],
    timing: known(facts.timing, timingOptions),
    limits: known(facts.limits, limitOptions),
  };
}

function checked(options: JoinOptions, text: string, from: string): Joining | Ending {
  const usage = (sentence: string): Ending => ({ exit: "usage", sentence });
  try {
    const kept = JSON.parse(text) as { readonly clusterId: unknown; readonly config: unknown } | null;
    const config = parseConfig(JSON.stringify(kept?.config, listeningAt(options)), from, options.environment);
    const [own] = config.nodes;
    if (typeof kept?.clusterId !== "string" || own === undefined) return usage(`${from} names no cluster`);
    const { nodeId, peer, client } = options;
    if (own.id === nodeId && own.peer === peer && own.client === client) return { clusterId: kept.clusterId, config };
    return usage(
      `this directory was begun as ${own.id} with --peer ${own.peer} --client ${own.client}: a node keeps its id and addresses; if it was never added, empty the directory and begin anew`,
    );
  } catch (error) {
    if (error instanceof ConfigError) return usage(error.message);
    return usage(`${from} can't be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** For JSON.stringify: a configuration's node gets its listen addresses. */
function listeningAt({ listen = {} }: JoinOptions): (key: string, value: unknown) => unknown {
  return (key, value) => {
    if (key !== "nodes" || !Array.isArray(value)) return value;
    return value.map((node: unknown) => (typeof node === "object" ? { ...node, listen } : node));
  };
}

/** Asks until somebody answers; null when it was asked to stop first. */
async function findCluster({ endpoints }: JoinOptions, parts: JoinParts): Promise<ClusterFacts | null> {
  const { logger, stop } = parts;
  let told = "";
  while (!stop.aborted) {
    const problems: string[] = [];
    for (const endpoint of endpoints) {
      try {
        const facts = await parts.ask(endpoint, stop);
        logger.info({ clusterId: facts.clusterId, endpoint }, `found the cluster ${facts.cluster}`);
        return facts;
      } catch (error) {
        problems.push(`${endpoint}: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
    const text = `no node of the cluster answers: ${problems.join("; ")}`;
    if (text !== told) logger.warn({}, text);
    told = text;
    await sleep(retryMs, undefined, { signal: stop }).catch(() => undefined);
  }
  return null;
}

/** Over HTTP. Rejects with a sentence for a person. */
export async function askForCluster(endpoint: string, stop: AbortSignal): Promise<ClusterFacts> {
  const body = await getJson<Partial<ClusterFacts>>(endpoint, "/v1/cluster", { timeoutMs: answerMs, stop });
  // A release that doesn't tell the members yet.
  const { cluster, clusterId, timing, limits, removed, members = [] } = body;
  const areTexts =
    typeof cluster === "string" && typeof clusterId === "string" && Array.isArray(removed) && Array.isArray(members);
  if (!areTexts || typeof timing !== "object" || typeof limits !== "object") throw new Error("is no node of a cluster");
  return { cluster, clusterId, timing, limits, removed, members };
}
