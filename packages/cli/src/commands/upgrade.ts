/** `holdfast upgrade`: how far an upgrade is, and its end (docs/operations.md, "Rolling upgrade"). */
import type { Command } from "commander";
import { CommandFailure } from "../command-failure.js";
import { withClient, withCluster } from "../context.js";
import type { ClusterOptions, Context } from "../context.js";
import { columns, facts, json, plain } from "../output.js";
import { rangeText, reportsFor, summaryOf } from "./status.js";
import type { NodeSummary, StatusSummary } from "./status.js";

interface UpgradeOptions extends ClusterOptions {
  readonly finalize?: boolean;
}

export function addUpgradeCommand(program: Command, context: Context): void {
  withCluster(program.command("upgrade"))
    .description("show how far a rolling upgrade is; with --finalize, end it")
    .option("--finalize", "let the cluster use what the new release brings: the one before can't run it any more")
    .action(async (options: UpgradeOptions) => {
      const { io } = context;
      if (options.finalize === true) {
        const clusterVersion = await withClient(options, io, (holdfast) => holdfast.finalizeUpgrade());
        io.out(options.json === true ? json({ clusterVersion }) : `the cluster is at version ${clusterVersion}\n`);
        return;
      }
      const progress = progressOf(summaryOf(await reportsFor(options, io)));
      if (progress.clusterVersion === null) throw new CommandFailure("error", "unreachable", "no node answers");
      io.out(options.json === true ? json(progress) : progressText(progress));
    });
}

export interface UpgradeProgress {
  /** Null when no node answers. */
  readonly clusterVersion: number | null;
  /** The highest that any node runs. */
  readonly highest: number | null;
  /** Every node answers and runs the highest version, and the cluster isn't there yet. */
  readonly isFinalizable: boolean;
  readonly nodes: readonly Pick<NodeSummary, "id" | "endpoint" | "versions" | "version">[];
}

export function progressOf(status: StatusSummary): UpgradeProgress {
  const { clusterVersion } = status;
  const highest = status.nodes.reduce((max, { versions }) => Math.max(max, versions?.max ?? 0), 0);
  const areReady = status.nodes.every(({ versions }) => versions !== null && versions.max === highest);
  return {
    clusterVersion,
    highest: highest === 0 ? null : highest,
    isFinalizable: clusterVersion !== null && clusterVersion < highest && areReady,
    nodes: status.nodes.map(({ id, endpoint, versions, version }) => ({ id, endpoint, versions, version })),
  };
}

export function progressText(progress: UpgradeProgress): string {
  const rows = progress.nodes.map(({ id, endpoint, versions, version }) => [
    plain(id ?? endpoint),
    rangeText(versions),
    version === null ? "" : plain(version),
  ]);
  const top = facts([["cluster version", String(progress.clusterVersion)]]);
  return `${top}\n${columns(["NODE", "RUNS", "RELEASE"], rows)}\n${nextStep(progress)}\n`;
}

function nextStep({ clusterVersion, highest, isFinalizable, nodes }: UpgradeProgress): string {
  if (highest === null || clusterVersion === null || highest <= clusterVersion) return "nothing to finalize";
  if (isFinalizable) return `all nodes run version ${highest}: holdfast upgrade --finalize raises the cluster to it`;
  const behind = nodes.filter(({ versions }) => versions === null || versions.max < highest);
  const names = behind.map(({ id, endpoint }) => plain(id ?? endpoint)).join(", ");
  return `not on all nodes yet: ${names}; until it is finalized, the nodes can go back to the release before`;
}
