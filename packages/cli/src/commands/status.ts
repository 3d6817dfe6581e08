/** `holdfast status`: every node's own word. */
import { HoldfastError } from "@holdfast/client";
import type { NodeReport } from "@holdfast/client";
import type { Command } from "commander";
import { endpointsFor, withClient, withCluster } from "../context.js";
import type { ClusterOptions, Context } from "../context.js";
import { formatDuration } from "../durations.js";
import { exitCodes } from "../exit-codes.js";
import { shortened } from "../failures.js";
import type { Io } from "../io.js";
import { columns, json, paintFor, plain, unpainted } from "../output.js";
import type { Paint, Style } from "../output.js";
import { withReadiness } from "../readiness.js";

/** One node that hangs must not hold back the others' word for longer. */
const nodeTimeoutMs = 3_000;

export function addStatusCommand(program: Command, context: Context): void {
  withCluster(program.command("status"))
    .description("who leads, and how each node is; exit code 1 when nobody leads")
    .action(async (options: ClusterOptions) => {
      const status = await withPercents(summaryOf(await reportsFor(options, context.io)), options, context.io);
      context.io.out(options.json === true ? json(status) : statusText(status, paintFor(context.io)));
      if (status.leader === null) context.setExitCode(exitCodes.error);
    });
}

/** Asks the nodes that were named; when they know of others, asks all of them. */
export async function reportsFor(options: ClusterOptions, io: Io): Promise<readonly NodeReport[]> {
  const asked = await askNodes(options, io);
  const named = new Set(asked.map(({ endpoint }) => endpoint));
  const known = new Set(asked.flatMap(({ status }) => status?.nodes.map(({ client }) => client) ?? []));
  if ([...known].every((client) => named.has(client))) return asked;
  const all = await askNodes({ ...options, endpoints: [...known].join(",") }, io);
  return mergeReports(asked, all);
}

/** A cluster of which no node answers has a status too. */
async function askNodes(options: ClusterOptions, io: Io): Promise<readonly NodeReport[]> {
  try {
    const reports = await withClient(options, io, (holdfast) =>
      holdfast.status({ timeoutMs: Math.min(options.timeout, nodeTimeoutMs) }),
    );
    return await Promise.all(
      reports.map(async (report) =>
        report.error === null ? report : { ...report, error: await withReadiness(report.error) },
      ),
    );
  } catch (error) {
    if (!(error instanceof HoldfastError) || error.code === "invalid_argument") throw error;
    const endpoints = endpointsFor(options, io).split(",");
    return endpoints.map((each) => {
      const endpoint = each.trim();
      return {
        endpoint,
        status: null,
        error: new HoldfastError(error.code, `${endpoint}: ${problemIn(error, endpoint)}`),
      };
    });
  }
}

/** "host:port: problem; host:port: problem" is what the client tells as the cause. */
function problemIn(error: HoldfastError, endpoint: string): string {
  const start = `${endpoint}: `;
  const causes = error.cause instanceof Error ? shortened(error.cause.message).split("; ") : [];
  return causes.find((cause) => cause.startsWith(start))?.slice(start.length) ?? error.message;
}

/** One report a node: its advertised address may not be reachable from here where the one that was named is. */
export function mergeReports(asked: readonly NodeReport[], all: readonly NodeReport[]): readonly NodeReport[] {
  const nodes = [...asked, ...all].flatMap(({ status }) => status?.nodes ?? []);
  return all.map((report) => {
    if (report.status !== null) return report;
    const id = nodes.find(({ client }) => client === report.endpoint)?.id;
    return asked.find(({ status }) => status !== null && status.id === id) ?? report;
  });
}

/** Only the leader knows how far learners are; a status doesn't fail for want of it. */
async function withPercents(status: StatusSummary, options: ClusterOptions, io: Io): Promise<StatusSummary> {
  if (status.leader === null || !status.nodes.some(({ role }) => role === "learner")) return status;
  const timeout = Math.min(options.timeout, nodeTimeoutMs);
  const members = await withClient({ ...options, timeout }, io, (holdfast) => holdfast.members()).catch(() => null);
  const percents = new Map(members?.members.map(({ id, percent }) => [id, percent]));
  const nodes = status.nodes.map((node) =>
    node.role === "learner" ? { ...node, percent: percents.get(node.id ?? "") ?? null } : node,
  );
  return { ...status, nodes };
}

/** What a node that was started to join says at /readyz. */
const waitsWords = "waits to be added";

export interface NodeSummary {
  /** Null for a node that didn't answer: nobody knows which it is. */
  readonly id: string | null;
  readonly endpoint: string;
  /** "unreachable" when it didn't answer, "joining" when it waits to be added to the cluster. */
  readonly role: string;
  /** Of a learner: how much of the leader's log it holds, as the leader knows it. */
  readonly percent: number | null;
  readonly term: number | null;
  readonly commitIndex: number | null;
  readonly lastApplied: number | null;
  readonly lastIndex: number | null;
  readonly snapshotIndex: number | null;
  readonly sessions: number | null;
  readonly locks: number | null;
  readonly uptimeMs: number | null;
  /** The release. */
  readonly version: string | null;
  /** The cluster versions that it can run. */
  readonly versions: { readonly min: number; readonly max: number } | null;
  readonly error: string | null;
}

export interface StatusSummary {
  /** The node that leads in the highest term that any node names; null when none does. */
  readonly leader: string | null;
  readonly term: number | null;
  readonly clusterId: string | null;
  /** The highest that any node has applied; null when none answers. */
  readonly clusterVersion: number | null;
  readonly nodes: readonly NodeSummary[];
}

export function summaryOf(reports: readonly NodeReport[]): StatusSummary {
  const answers = reports.flatMap(({ status }) => (status === null ? [] : [status]));
  // A node that was cut off may still believe in the leader of an older term.
  const newest = answers.reduce((highest, { term }) => Math.max(highest, term), 0);
  const leader = answers.find(({ role, term }) => role === "leader" && term === newest);
  const known = answers.flatMap(({ nodes }) => nodes);
  const nodes = reports.map((report) =>
    nodeSummary(report, known.find(({ client }) => client === report.endpoint)?.id ?? null),
  );
  return {
    leader: leader?.id ?? null,
    term: answers.length === 0 ? null : newest,
    clusterId: answers.find(({ clusterId }) => clusterId !== "")?.clusterId ?? null,
    clusterVersion: answers.length === 0 ? null : Math.max(...answers.map((each) => each.clusterVersion)),
    nodes: nodes.sort((a, b) => ((a.id ?? a.endpoint) < (b.id ?? b.endpoint) ? -1 : 1)),
  };
}

function nodeSummary({ endpoint, status, error }: NodeReport, knownId: string | null): NodeSummary {
  return {
    id: status?.id ?? knownId,
    endpoint,
    role: status?.role ?? (error?.message.includes(waitsWords) === true ? "joining" : "unreachable"),
    percent: null,
    term: status?.term ?? null,
    commitIndex: status?.commitIndex ?? null,
    lastApplied: status?.lastApplied ?? null,
    lastIndex: status?.lastIndex ?? null,
    snapshotIndex: status?.snapshotIndex ?? null,
    sessions: status?.sessions ?? null,
    locks: status?.locks ?? null,
    uptimeMs: status === null ? null : Math.round(status.uptimeMs),
    version: status?.version ?? null,
    versions: status?.versions ?? null,
    error: error?.message ?? null,
  };
}

const head = [
  "NODE",
  "ROLE",
  "TERM",
  "COMMITTED",
  "APPLIED",
  "LAST",
  "SNAPSHOT",
  "SESSIONS",
  "LOCKS",
  "UP",
  "RUNS",
  "CLIENTS",
];

const roleColumn = head.indexOf("ROLE");
const roleStyles: Readonly<Record<string, Style>> = { leader: "green", unreachable: "red", joining: "yellow" };

export function statusText(status: StatusSummary, paint: Paint = unpainted): string {
  const cell = (value: number | null): string => (value === null ? "" : String(value));
  const rows = status.nodes.map((node) => [
    plain(node.id ?? "?"),
    plain(node.role) + (node.percent === null ? "" : ` ${node.percent} %`),
    ...[
      node.term,
      node.commitIndex,
      node.lastApplied,
      node.lastIndex,
      node.snapshotIndex,
      node.sessions,
      node.locks,
    ].map(cell),
    node.uptimeMs === null ? "" : formatDuration(Math.floor(node.uptimeMs / 1_000) * 1_000),
    rangeText(node.versions),
    plain(node.endpoint),
  ]);
  const errors = new Set(status.nodes.flatMap(({ error }) => (error === null ? [] : [`${plain(error)}\n`])));
  const styleOf = (row: number, column: number): Style | null =>
    column === roleColumn ? (roleStyles[status.nodes[row]?.role ?? ""] ?? null) : null;
  const leads =
    status.leader === null ? paint("red", "nobody leads") : `${plain(status.leader)} leads in term ${status.term}`;
  const version = status.clusterVersion === null ? "" : ` at version ${status.clusterVersion}`;
  const cluster = status.clusterId === null ? "" : `cluster ${plain(status.clusterId)}${version}: `;
  return `${cluster}${leads}\n\n${columns(head, rows, { paint, styleOf })}${errors.size === 0 ? "" : `\n${[...errors].join("")}`}`;
}

/** "1", or "1-2". Empty for a node that doesn't answer. */
export function rangeText(versions: NodeSummary["versions"]): string {
  if (versions === null) return "";
  return versions.min === versions.max ? String(versions.max) : `${versions.min}-${versions.max}`;
}
