/** `holdfast doctor`: what is wrong with a running cluster, with a stopped node's directory, or with a store's guard, and what mends it. */
import type { Command } from "commander";
import { CommandFailure } from "../command-failure.js";
import { endpointsFor, withCluster } from "../context.js";
import type { ClusterOptions, Context } from "../context.js";
import { askNodes } from "../doctor/ask-nodes.js";
import { findingsText, sorted, verdictOf } from "../doctor/finding.js";
import type { Finding, Severity } from "../doctor/finding.js";
import { judgeCluster } from "../doctor/judge-cluster.js";
import { judgeDirectory } from "../doctor/judge-directory.js";
import { integerOption } from "../durations.js";
import type { ExitName } from "../exit-codes.js";
import { exitCodes } from "../exit-codes.js";
import type { Io } from "../io.js";
import { json, paintFor } from "../output.js";
import { withBackupFailures } from "./backup-failures.js";
import { readConfig } from "./node.js";

interface DoctorOptions extends ClusterOptions {
  readonly seconds?: number;
  readonly config?: string;
  readonly data?: string;
  readonly guard?: string;
  readonly lock?: string;
  readonly method?: string;
  readonly body?: string;
}

/** One node that hangs must not hold up the word on the others for longer. */
const nodeTimeoutMs = 3_000;
const usualSeconds = 3;
const exitFor: Readonly<Record<Severity, ExitName>> = { ok: "ok", warning: "warnings", problem: "problems" };

export function addDoctorCommand(program: Command, context: Context): void {
  withCluster(program.command("doctor"))
    .description(
      "what is wrong with a cluster, a stopped node's directory or a guard, and what mends it; exit codes 3 and 4",
    )
    .option(
      "--seconds <number>",
      `how long to watch the clocks (default: ${usualSeconds}); longer sees smaller differences`,
      integerOption(1, 600),
    )
    .option("--config <file>", "compare with this configuration; without --endpoints, ask its nodes")
    .option("--data <folder>", "check this directory of a stopped node instead; nothing in it is changed")
    .option(
      "--guard <url>",
      "check that this store refuses an old token instead: postgres://, mysql://, redis://, sqlite:FILE or s3://; or that a resource at https:// does",
    )
    .option("--lock <name>", "with --guard https://: take this lock, write once under it, and present an old token")
    .option("--method <method>", "with --guard https://: how to ask (default: GET)")
    .option("--body <text>", "with --guard https://: what to send, as JSON if it is")
    .action(async (options: DoctorOptions) => {
      const findings = await findingsFor(options, context.io);
      const verdict = verdictOf(findings);
      context.io.out(
        options.json === true
          ? json({ verdict, findings: sorted(findings) })
          : findingsText(findings, paintFor(context.io)),
      );
      context.setExitCode(exitCodes[exitFor[verdict]]);
    });
}

async function findingsFor(options: DoctorOptions, io: Io): Promise<readonly Finding[]> {
  const { guard, lock, method, body } = options;
  if (guard !== undefined) return tryGuard(guard, options, io);
  if ([lock, method, body].some((other) => other !== undefined)) throw onlyForHttp();
  return options.data === undefined ? examine(options, io) : dissect(options);
}

async function tryGuard(url: string, options: DoctorOptions, io: Io): Promise<readonly Finding[]> {
  const { data, endpoints, config, seconds, lock, method, body, timeout } = options;
  const { examineResource, isHttp } = await import("../doctor/guard/probe-http.js");
  const takesLock = isHttp(url) && lock !== undefined;
  if ([data, config, seconds, takesLock ? undefined : endpoints].some((other) => other !== undefined)) {
    const problem =
      "--guard checks a resource: --data, --endpoints, --config and --seconds are for nodes and clusters, --endpoints for --lock too";
    throw new CommandFailure("usage", "usage", problem);
  }
  if (isHttp(url)) return examineResource(url, options, options, io);
  if ([lock, method, body].some((other) => other !== undefined)) throw onlyForHttp();
  const { examineStore } = await import("../doctor/guard/probe-store.js");
  return examineStore(url, process.cwd(), timeout);
}

function onlyForHttp(): CommandFailure {
  const problem = "--lock, --method and --body are for --guard with the URL of a resource behind HTTP";
  return new CommandFailure("usage", "usage", problem);
}

async function examine(options: DoctorOptions, io: Io): Promise<readonly Finding[]> {
  const file =
    options.config === undefined ? null : { name: options.config, content: await readConfig(options.config, io) };
  const configured = file?.content.nodes.map(({ client }) => client) ?? null;
  const endpoints =
    configured !== null && options.endpoints === undefined ? configured : endpointsIn(endpointsFor(options, io));
  const nodes = await askNodes(endpoints, {
    timeoutMs: Math.min(options.timeout, nodeTimeoutMs),
    measureMs: 1_000 * (options.seconds ?? usualSeconds),
  });
  return judgeCluster({ nodes, file });
}

function endpointsIn(list: string): readonly string[] {
  const endpoints = list.split(",").map((endpoint) => endpoint.trim());
  if (endpoints.every((endpoint) => /^[^/?#@]+:\d{1,5}$/.test(endpoint) && URL.canParse(`http://${endpoint}`)))
    return endpoints;
  throw new CommandFailure("usage", "invalid_argument", `"${list}" is no list of nodes; write host:port,host:port,...`);
}

async function dissect({ data = "", endpoints, config, seconds }: DoctorOptions): Promise<readonly Finding[]> {
  if (endpoints !== undefined || config !== undefined || seconds !== undefined) {
    const problem =
      "--data checks a stopped node's directory: --endpoints, --config and --seconds are for a running cluster";
    throw new CommandFailure("usage", "usage", problem);
  }
  if (data === "") throw new CommandFailure("usage", "usage", "--data is empty: the directory of a stopped node");
  const { reportDirectory } = await import("@holdfast/server");
  return judgeDirectory(await withBackupFailures({ source: data, fileAdvice: "" }, () => reportDirectory(data)));
}
