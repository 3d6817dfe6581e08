/** `holdfast watch`: a line for each change of locks, for as long as it runs. */
import type { WatchEvent } from "@holdfast/client";
import type { Command } from "commander";
import { withClient, withCluster } from "../context.js";
import type { ClusterOptions, Context } from "../context.js";
import { json, plain } from "../output.js";

interface WatchOptions extends ClusterOptions {
  readonly exact?: boolean;
}

export function addWatchCommand(program: Command, context: Context): void {
  withCluster(program.command("watch"))
    .description("print each change of locks as it happens, until it is stopped")
    .argument("[prefix]", "only locks whose names begin with it", "")
    .option("--exact", "only the lock of that very name")
    .action(async (name: string, options: WatchOptions) => {
      await withClient(options, context.io, async (holdfast) => {
        for await (const event of holdfast.watch(name, { prefix: options.exact !== true })) {
          context.io.out(options.json === true ? json(event) : eventText(event));
        }
      });
    });
}

/** Index first: it is the order of the log, and rises. */
export function eventText(event: WatchEvent): string {
  const at = String(event.index).padStart(8);
  if (event.type === "gap") return `${at}  gap          changes up to here may be missing\n`;
  const place = event.slot === null ? "" : `  place ${event.slot}`;
  const token = event.type === "delay_ended" ? "" : `  token ${event.token}`;
  return `${at}  ${event.type.padEnd(11)}  ${plain(event.name)}${token}${place}\n`;
}
