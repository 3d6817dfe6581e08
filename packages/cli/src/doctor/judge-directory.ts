/** From what a stopped node's directory holds to what is wrong with it. Pure. */
import type { DirectoryProblem, DirectoryReport } from "@holdfast/server";
import { listed } from "./cluster-facts.js";
import { manual, ok, problem, warning } from "./finding.js";
import type { Finding } from "./finding.js";
import { sizeText, spaceFault } from "./judge-nodes.js";
import { replaceCommand } from "./judge-cluster.js";

const refusedPage = `${manual}#a-node-that-refuses-to-start`;

export function judgeDirectory(report: DirectoryReport): readonly Finding[] {
  const node = report.identity?.nodeId ?? null;
  const faults = report.problems.map((one) => problemFinding(one, report));
  const space = spaceFault(node, report.directory, report.disk);
  const free = report.disk === null ? "unknown" : sizeText(report.disk.freeBytes);
  return [
    ...faults,
    ...identityFindings(report),
    ...databaseFindings(report),
    ...configurationFindings(report),
    ...remainsFindings(report),
    space ?? ok("disk space", `the directory has ${report.bytes} bytes; free: ${free}`),
  ];
}

function problemFinding(found: DirectoryProblem, report: DirectoryReport): Finding {
  const { exit, exitCode, isQuarantine, reason } = found;
  const node = report.identity?.nodeId ?? null;
  return problem(isQuarantine ? "quarantine" : "integrity", {
    node,
    seen: reason,
    why: whyOf(found, report),
    mend: mendFor(exit, node ?? "ID", report.directory) ?? `see exit code ${exitCode}: ${manual}#exit-codes`,
  });
}

function whyOf({ exitCode, exit, isQuarantine }: DirectoryProblem, { database }: DirectoryReport): string {
  if (exit === "removed") return `Neither its id nor this directory ever comes back (exit code ${exitCode}).`;
  if (isQuarantine) {
    const rest =
      database === null ? "" : " All that can be checked in it is sound, and yet it may hold less than was promised.";
    return `No node starts from it, ever (exit code ${exitCode}).${rest}`;
  }
  if (exit === "newerFormat" || exit === "wrongVersion")
    return `The data is in order; this release ends with exit code ${exitCode}.`;
  return `A node would end with exit code ${exitCode} rather than forget a vote or an acknowledged entry.`;
}

/** The command or page for each way to end that a directory can lead to. */
function mendFor(exit: DirectoryProblem["exit"], id: string, directory: string): string | null {
  const replace = `${replaceCommand(id)} (${refusedPage})`;
  switch (exit) {
    case "storage":
      return `look at the disk, and leave the directory as it is; then ${replace}; with no majority left: holdfast restore --from-data ${directory} --to FILE --force (${manual}#lost-majority)`;
    case "oldCopy":
      return `find the right directory, if it exists; else ${replace}`;
    case "newerFormat":
    case "wrongVersion":
      return `run the release that wrote it: ${manual}#rolling-upgrade`;
    case "removed":
      return `nothing is wrong with the cluster: take the node's unit away, and delete ${directory}; a node in its place gets a new id and an empty directory: ${manual}#members`;
    case "internal":
      return `keep the directory and report this; then ${replace}`;
    default:
      return null;
  }
}

function identityFindings({ identity }: DirectoryReport): readonly Finding[] {
  if (identity === null) return [];
  const { nodeId, instance, clusterId, boot } = identity;
  const cluster = clusterId === null ? "never part of a cluster, so there is nothing in it" : `of cluster ${clusterId}`;
  return [ok("identity", `node ${nodeId}, instance ${instance}, starts: ${boot}, ${cluster}`)];
}

function databaseFindings({ database, machine, markedBatch }: DirectoryReport): readonly Finding[] {
  if (database === null) return [];
  const { batchNumber, term, votedFor, snapshot, entries, lastIndex, lastTerm, tails } = database;
  const vote = votedFor === null ? "no vote given" : `vote for ${votedFor}`;
  const findings = [
    ok("mark", `batch ${markedBatch} was finished, and the database ends with batch ${batchNumber}`),
    ok("hard state", `term ${term}, ${vote}`),
    ok(
      "log",
      `${entries} entries, each read and chained to the one before; the last is ${lastIndex} in term ${lastTerm}`,
    ),
    ...tails.map(({ file, found }) =>
      ok("log", `${file}: ${found}; it was never acknowledged, and the next start cuts it off`),
    ),
    ok(
      "snapshot",
      snapshot === null ? "none yet" : `of index ${snapshot.index}, ${snapshot.chunks} chunks, all checksums right`,
    ),
  ];
  if (machine !== null) {
    const { clusterVersion, sessions, locks } = machine;
    const state = `cluster version ${clusterVersion}, sessions: ${sessions}, locks: ${locks}`;
    findings.push(ok("state", `snapshot and entries lead to: ${state}`));
  }
  return findings;
}

function configurationFindings({ database, identity, problems }: DirectoryReport): readonly Finding[] {
  if (database === null) return [];
  const { voters, outgoing, learners } = database.configuration;
  const members = [...voters, ...outgoing, ...learners];
  const own = members.find(({ id }) => id === identity?.nodeId);
  const told = `voters ${listed(voters.map(({ id }) => id))}${learners.length === 0 ? "" : `, learners ${listed(learners.map(({ id }) => id))}`}`;
  const isRemoved = problems.some(({ exit }) => exit === "removed");
  if (isRemoved || (own !== undefined && own.instance === identity?.instance)) return [ok("configuration", told)];
  const seen =
    own === undefined
      ? "the configuration in its log doesn't have it"
      : "the configuration in its log has it with another directory";
  return [
    warning("configuration", {
      node: identity?.nodeId ?? null,
      seen: `${seen}: ${told}`,
      why: "It was removed or replaced, or has not learnt yet that it was added.",
      mend: "holdfast member list tells who belongs to the cluster now",
    }),
  ];
}

function remainsFindings({ remains }: DirectoryReport): readonly Finding[] {
  if (remains === null) return [];
  const { snapshotIndex, lastIndex, unreadable } = remains;
  const from = snapshotIndex === null ? "from the log's beginning" : `from the snapshot of index ${snapshotIndex}`;
  return [
    ok(
      "remains",
      `what is left goes ${from} to index ${lastIndex}; holdfast restore --from-data --force takes that much`,
    ),
    ...unreadable.map((each) => ok("remains", `not readable: ${each}`)),
  ];
}
