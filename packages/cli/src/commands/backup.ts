/** `holdfast backup`: a consistent snapshot of the cluster's state, from any of its nodes, in one file. */
import type { WrittenBackup } from "@holdfast/server";
import { GetError, getBytes, getJson } from "@holdfast/server/http-get";
import type { Command } from "commander";
import { CommandFailure } from "../command-failure.js";
import { endpointsFor, withCluster } from "../context.js";
import type { ClusterOptions, Context } from "../context.js";
import { facts, json, plain } from "../output.js";
import { withBackupFailures } from "./backup-failures.js";

interface BackupOptions extends ClusterOptions {
  readonly node?: string;
  readonly force?: boolean;
}

export function addBackupCommand(program: Command, context: Context): void {
  withCluster(program.command("backup"))
    .description("write a consistent snapshot of the cluster's state to a file")
    .argument("<file>", "where to; it must not be there yet")
    .option("--node <id>", "the node to take it from; without it the one that has applied most, a follower if one has")
    .option("--force", "replace a file that is there")
    .action(async (file: string, options: BackupOptions) => {
      if (file === "") throw new CommandFailure("usage", "usage", "FILE is empty: where to write the backup");
      const source = await sourceFor(options, endpointsFor(options, context.io));
      const written = await withBackupFailures({ source, fileAdvice: "--force replaces it" }, () =>
        fetchBackup(source, file, options),
      );
      context.io.out(options.json === true ? json(summaryOf(file, written)) : textOf(file, written));
    });
}

/** What /v1/status says, as far as it is needed here. */
export interface SourceStatus {
  readonly id: string;
  readonly role: string;
  readonly lastApplied: number;
  readonly nodes: readonly { readonly id: string; readonly client: string }[];
}

export interface BackupSource {
  readonly endpoint: string;
  /** Null when only another node has named it. */
  readonly status: SourceStatus | null;
}

async function sourceFor(options: BackupOptions, endpoints: string): Promise<string> {
  const named = endpoints.split(",").map((endpoint) => endpoint.trim());
  if (named.some((endpoint) => !URL.canParse(`http://${endpoint}`))) {
    throw new CommandFailure("usage", "invalid_argument", `"${endpoints}" is no list of nodes; write host:port,...`);
  }
  const problems: string[] = [];
  const ask = async (endpoint: string): Promise<BackupSource> => {
    try {
      const status = await getJson<SourceStatus>(endpoint, "/v1/status", { timeoutMs: options.timeout });
      if (Array.isArray(status.nodes)) return { endpoint, status };
      problems.push(`${endpoint}: it is no node of a cluster`);
    } catch (error) {
      if (!(error instanceof GetError)) throw error;
      problems.push(`${endpoint}: ${error.message}`);
    }
    return { endpoint, status: null };
  };
  const answers = await Promise.all(named.map(ask));
  const others = new Set(answers.flatMap(({ status }) => status?.nodes.map(({ client }) => client) ?? []));
  for (const endpoint of named) others.delete(endpoint);
  // A node may be known by another name than the one that it was asked under: then it answers twice, and no harm is done.
  const sources = [...answers, ...(await Promise.all([...others].map(ask)))];
  const source = chooseSource(sources, options.node ?? null);
  if (source !== null) return source.endpoint;
  const what = options.node === undefined ? "no node answers" : `node ${plain(options.node)} doesn't answer`;
  throw new CommandFailure("error", "unreachable", `${what} (${problems.map(plain).join("; ") || "it is not known"})`);
}

/** The node that was asked for; else the one that has applied most, and a follower rather than the leader. Null when none answers. */
export function chooseSource(sources: readonly BackupSource[], node: string | null): BackupSource | null {
  let best: BackupSource | null = null;
  for (const source of sources) {
    const { status } = source;
    if (status === null || (node !== null && status.id !== node)) continue;
    const most = best?.status?.lastApplied ?? -1;
    const isSpared = status.lastApplied === most && best?.status?.role === "leader";
    if (status.lastApplied > most || isSpared) best = source;
  }
  return best;
}

async function fetchBackup(endpoint: string, file: string, options: BackupOptions): Promise<WrittenBackup> {
  const { writeBackupFile } = await import("@holdfast/server");
  return writeBackupFile(file, bytesFrom(endpoint, options.timeout), { overwrite: options.force === true });
}

/**
 * Asks when the first bytes are wanted: whoever may not write the file doesn't trouble the node. It takes a snapshot before its first byte;
 * afterwards only a silent connection is given up.
 */
async function* bytesFrom(endpoint: string, timeoutMs: number): AsyncGenerator<Uint8Array> {
  try {
    yield* getBytes(endpoint, "/v1/backup", { timeoutMs });
  } catch (error) {
    if (!(error instanceof GetError)) throw error;
    const { kind, code, message } = error;
    const problem = kind === "silent" ? `${endpoint} broke the backup off: ${message}` : `${endpoint}: ${message}`;
    throw new CommandFailure("error", code ?? "unreachable", plain(problem));
  }
}

/** The facts of a backup, for programs. */
export function summaryOf(file: string, { header, bytes, chunks }: WrittenBackup): object {
  const { clusterId, nodeId: node, base, takenAtMs, closingMs } = header;
  const { index, term } = base.position;
  const takenAt = new Date(takenAtMs).toISOString();
  return { file, bytes, chunks, clusterId, node, index, term, takenAt, closingMs };
}

export function textOf(file: string, { header, bytes }: WrittenBackup): string {
  const { clusterId, nodeId, base, takenAtMs } = header;
  return facts([
    ["written", plain(file)],
    ["bytes", String(bytes)],
    ["cluster", plain(clusterId)],
    ["node", plain(nodeId)],
    ["index", `${base.position.index} in term ${base.position.term}`],
    ["taken", new Date(takenAtMs).toISOString()],
  ]);
}
