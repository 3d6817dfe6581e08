/** `holdfast bench`. */
import type { Command } from "commander";
import { Bench } from "../bench/bench.js";
import type { BenchResult } from "../bench/bench.js";
import type { LatencySummary } from "../bench/latencies.js";
import { connectFor, dayMs, withCluster } from "../context.js";
import type { ClusterOptions, Context } from "../context.js";
import { durationFlag, integerOption } from "../durations.js";
import { exitCodes } from "../exit-codes.js";
import { columns, json } from "../output.js";

interface BenchCommandOptions extends ClusterOptions {
  readonly clients: number;
  readonly connections?: number;
  readonly locks: number;
  readonly seconds: number;
  readonly warmup: number;
}

export function addBenchCommand(program: Command, context: Context): void {
  withCluster(program.command("bench"))
    .description("acquire and release locks as fast as it goes; cycles a second and latencies")
    .option("--clients <number>", "how many take and release locks at once, each its own", integerOption(1, 10_000), 10)
    .option("--seconds <number>", "how long to measure", integerOption(1, 86_400), 10)
    .option("--locks <number>", "how many locks each client takes in turn", integerOption(1, 1_000_000), 1)
    .option("--connections <number>", "how many connections they share (default: one each)", integerOption(1, 10_000))
    .addOption(
      durationFlag("--warmup <duration>", "how long to run before measuring", { minMs: 0, maxMs: dayMs }, 1_000),
    )
    .action(async (options: BenchCommandOptions) => {
      const { clients, connections = clients, locks, seconds, warmup } = options;
      const stop = new AbortController();
      const onSignal = (): void => stop.abort();
      process.once("SIGINT", onSignal).once("SIGTERM", onSignal);
      const bench = new Bench({ clients, connections, locks, warmupMs: warmup, measureMs: seconds * 1_000 }, () =>
        connectFor(options, context.io),
      );
      const result = await bench
        .run(stop.signal)
        .finally(() => process.off("SIGINT", onSignal).off("SIGTERM", onSignal));
      context.io.out(options.json === true ? json(result) : benchText(result));
      if (result.cycles === 0) context.setExitCode(exitCodes.error);
    });
}

export function benchText(result: BenchResult): string {
  const { clients, connections, cycles, seconds, cyclesPerSecond, errors } = result;
  const top = `${clients} clients on ${connections} connections: ${cycles} cycles in ${seconds.toFixed(1)} s, ${cyclesPerSecond} a second\n`;
  const rows = [
    ["acquire", ...cells(result.acquire)],
    ["release", ...cells(result.release)],
    ["cycle", ...cells(result.cycle)],
  ];
  const failures = Object.entries(errors).map(([code, count]) => `${count} cycles failed: ${code}\n`);
  return `${top}\n${columns(["MS", "MEAN", "P50", "P90", "P99", "P99.9", "MAX"], rows)}${failures.join("")}`;
}

function cells(summary: LatencySummary): readonly string[] {
  const { meanMs, p50Ms, p90Ms, p99Ms, p999Ms, maxMs } = summary;
  return [meanMs, p50Ms, p90Ms, p99Ms, p999Ms, maxMs].map((ms) => ms.toFixed(2));
}
