/** `holdfast dev`: see dev/dev-command.ts. */
import { connect, HoldfastError } from "@holdfast/client";
import type { Config } from "@holdfast/server";
import { Option } from "commander";
import type { Command } from "commander";
import { withOutput } from "../context.js";
import type { Context, OutputOptions } from "../context.js";
import { clusterSizes } from "../dev/cluster-file.js";
import { nodeWords, runDev } from "../dev/dev-command.js";
import type { DevNode } from "../dev/dev-command.js";
import { watchParent } from "../dev/parent-watch.js";
import { configParser } from "./node.js";
import { summaryOf } from "./status.js";

interface DevCommandOptions extends OutputOptions {
  readonly nodes?: string;
  readonly data: string;
  readonly config?: string;
}

export function addDevCommand(program: Command, context: Context): void {
  const sizes = new Option("--nodes <number>", "how many nodes (default: as many as the folder holds, else 3)");
  withOutput(program.command("dev"))
    .description("start a cluster on this machine; it ends with this command")
    .addOption(sizes.choices(clusterSizes.map(String)).conflicts("config"))
    .option("--data <folder>", "where the nodes keep their data and logs", "data")
    .option("--config <file>", "a configuration of your own, with other ports say")
    .action(async (options: DevCommandOptions) => {
      const size = clusterSizes.find((each) => String(each) === options.nodes) ?? null;
      const { data, config = null } = options;
      const parse = await configParser(context.io);
      const code = await runDev(
        { size, data, config, isJson: options.json === true },
        {
          io: context.io,
          readNodes: (text, file) => devNodes(parse(text, file)),
          findLeader,
          wordsFor: nodeWords,
          onStopSignal: (stop) => {
            for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(name, stop);
            watchParent(stop);
          },
        },
      );
      context.setExitCode(code);
    });
}

function devNodes({ nodes }: Config): readonly DevNode[] {
  return nodes.map(({ id, client, listen }) => ({ id, client, listens: [listen.client, listen.peer] }));
}

async function findLeader(endpoints: readonly string[]): Promise<string | null> {
  try {
    const holdfast = await connect({ endpoints, connectTimeoutMs: 1_000 });
    try {
      return summaryOf(await holdfast.status({ timeoutMs: 1_000 })).leader;
    } finally {
      await holdfast.close();
    }
  } catch (error) {
    if (error instanceof HoldfastError) return null;
    throw error;
  }
}
