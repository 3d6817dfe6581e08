/**
 * `holdfast restore`: the first node's data directory of a new cluster, out of a backup, or out of what one surviving node of a lost cluster
 * has in its own.
 */
import type { Restored, RestoreOptions, Salvaged, WrittenBackup } from "@holdfast/server";
import type { Command } from "commander";
import { CommandFailure } from "../command-failure.js";
import { withOutput } from "../context.js";
import type { Context, OutputOptions } from "../context.js";
import { formatDuration, integerOption } from "../durations.js";
import { facts, json, plain } from "../output.js";
import { summaryOf, textOf } from "./backup.js";
import { withBackupFailures } from "./backup-failures.js";

interface Options extends OutputOptions {
  readonly data?: string;
  readonly id?: string;
  readonly peer?: string;
  readonly client?: string;
  readonly above?: number;
  readonly fromData?: string;
  readonly to?: string;
  readonly force?: boolean;
}

export function addRestoreCommand(program: Command, context: Context): void {
  withOutput(program.command("restore"))
    .description("make the first node of a new cluster out of a backup; the old cluster must be stopped for ever")
    .argument("[file]", "the backup")
    .option("--data <folder>", "the new node's data directory; not there yet, or empty")
    .option("--id <id>", "the new node")
    .option("--peer <address>", "where the other nodes reach it, host:port")
    .option("--client <address>", "where clients reach it, host:port")
    .option(
      "--above <number>",
      "continue above this number as well: above every token out there",
      integerOption(0, 2 ** 52),
    )
    .option("--from-data <folder>", "instead of a backup: a stopped node's data directory, when the majority is lost")
    .option("--to <file>", "with --from-data: write a backup of it")
    .option("--force", "with --from-data: take a directory that its node refuses")
    .action(async (file: string | undefined, options: Options) => {
      const words = { source: file ?? "", fileAdvice: "name another" };
      const report = await withBackupFailures(words, () => run(file, options));
      context.io.out(options.json === true ? json(jsonOf(options, report)) : textFor(options, report));
    });
}

interface Report {
  readonly salvaged: Salvaged | null;
  readonly backup: WrittenBackup | null;
  readonly restored: Restored | null;
}

async function run(file: string | undefined, options: Options): Promise<Report> {
  const { fromData, to, force = false, above = null } = options;
  const server = await import("@holdfast/server");
  if ((file === undefined) === (fromData === undefined)) throw usage("name one of FILE and --from-data");
  for (const path of [file, fromData, to, options.data]) {
    if (path === "") throw usage("FILE, --data, --from-data and --to name a file or folder: none of them may be empty");
  }
  if (to !== undefined && fromData === undefined) throw usage("--to belongs to --from-data");
  if (to === undefined && options.data === undefined)
    throw usage("--data is missing: where the new node keeps its data");
  const target = options.data === undefined ? null : await targetFor(options.data, options);
  if (file !== undefined) {
    if (target === null) throw usage("--data is missing");
    return { salvaged: null, backup: null, restored: await server.restoreFile(file, target) };
  }
  if (target !== null) await server.assertEmpty(target.directory);
  const salvaged = await server.salvageDirectory(fromData ?? "", { force, above });
  const { header, machine } = salvaged;
  const bytes = server.backupBytes(header, machine);
  const backup = to === undefined ? null : await server.writeBackupFile(to, bytes, { overwrite: false });
  const restored = target === null ? null : await server.restoreMachine(header, machine, target);
  return { salvaged, backup, restored };
}

async function targetFor(directory: string, options: Options): Promise<RestoreOptions> {
  const { namePattern, parseAddress } = await import("@holdfast/server");
  const { id, peer, client, above = null } = options;
  if (id === undefined || !namePattern.test(id))
    throw usage("--id must name the new node, as in its configuration file");
  for (const [option, address] of [
    ["--peer", peer],
    ["--client", client],
  ] as const) {
    if (address === undefined || parseAddress(address) === null) throw usage(`${option} must be an address, host:port`);
  }
  return { directory, node: { id, peer: peer ?? "", client: client ?? "" }, above };
}

function usage(problem: string): CommandFailure {
  return new CommandFailure("usage", "usage", problem);
}

function jsonOf({ data, to, fromData }: Options, { salvaged, backup, restored }: Report): object {
  return {
    ...(salvaged === null ? {} : { salvaged: salvagedFacts(fromData ?? "", salvaged) }),
    ...(backup === null ? {} : { backup: summaryOf(to ?? "", backup) }),
    ...(restored === null ? {} : { restored: restoredFacts(data ?? "", restored) }),
  };
}

function salvagedFacts(directory: string, { header, entries, problem }: Salvaged): object {
  const { clusterId, nodeId: node, base } = header;
  return { directory, clusterId, node, index: base.position.index, uncertainEntries: entries, problem };
}

function restoredFacts(directory: string, restored: Restored): object {
  const { backup, clusterId, index, term, closedMs, sessions, isAheadOfClock } = restored;
  const from = { clusterId: backup.clusterId, node: backup.nodeId, index: backup.base.position.index };
  const takenAt = new Date(backup.takenAtMs).toISOString();
  return {
    directory,
    clusterId,
    index,
    term,
    closedMs,
    endedSessions: sessions,
    isAheadOfClock,
    from: { ...from, takenAt },
  };
}

function textFor(options: Options, { salvaged, backup, restored }: Report): string {
  const parts: string[] = [];
  if (salvaged !== null) parts.push(lossText(salvaged));
  if (backup !== null) parts.push(textOf(options.to ?? "", backup));
  if (restored !== null) parts.push(restoredText(options, restored));
  return parts.join("\n");
}

/** What nobody can know any more, said before anything else. */
export function lossText({ header, entries, problem }: Salvaged): string {
  const { index } = header.base.position;
  const lines = [
    `${plain(header.nodeId)}'s log ends with index ${index}. Nobody can find out here:`,
    `- what other nodes had committed after index ${index}: such grants, releases and sessions are lost, although they were acknowledged;`,
  ];
  if (entries > 0)
    lines.push(`- which of its newest ${entries} entries were never committed: all of them count from now on.`);
  if (problem !== null)
    lines.push(`- what else is missing, for a node would refuse this directory: ${plain(problem)}.`);
  return lines.map((line) => `${line}\n`).join("");
}

function restoredText({ data, id }: Options, restored: Restored): string {
  const { backup, clusterId, index, closedMs, sessions, isAheadOfClock } = restored;
  const made = facts([
    ["made", plain(data ?? "")],
    ["cluster", plain(clusterId)],
    ["node", `${plain(id ?? "")}, its only voter`],
    [
      "from",
      `index ${backup.base.position.index} of cluster ${plain(backup.clusterId)}, ${takenText(backup.takenAtMs)}`,
    ],
    ["ended", `${sessions} sessions, with all that they held and waited for`],
    ["tokens", `above ${index}`],
    ["grants", closedMs === 0 ? "at once" : `${formatDuration(closedMs)} after its first leader serves`],
  ]);
  const next = `Start it with holdfast node --id ${plain(id ?? "")} --data ${plain(data ?? "")} and its configuration; add the others to it.\n`;
  const warning =
    "This index is ahead of the clock: a further restore, of any backup, needs --above with a number above every token given out by then.\n";
  return `${made}\n${isAheadOfClock ? warning : ""}${next}`;
}

function takenText(takenAtMs: number): string {
  return `taken ${new Date(takenAtMs).toISOString()}`;
}
