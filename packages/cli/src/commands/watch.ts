/** `holdfast watch`: a line for each change of locks, for as long as it runs. */
import type { WatchEvent } from "@holdfast/client";
import type { Command } from "commander";
import { withClient, withCluster } from "../context.js";
import type { ClusterOptions, Context } from "../context.js";
import { json, paintFor, plain, unpainted } from "../output.js";
import type { Paint, Style } from "../output.js";

interface WatchOptions extends ClusterOptions {
  readonly exact?: boolean;
}

export function addWatchCommand(program: Command, context: Context): void {
  withCluster(program.command("watch"))
    .description("print each change of locks as it happens, until it is stopped")
    .argument("[prefix]", "only locks whose names begin with it", "")
    .option("--exact", "only the lock of that very name")
    .action(async (name: string, options: WatchOptions) => {
      const paint = paintFor(context.io);
      await withClient(options, context.io, async (holdfast) => {
        for await (const event of holdfast.watch(name, { prefix: options.exact !== true })) {
          context.io.out(options.json === true ? json(event) : eventText(event, paint));
        }
      });
    });
}

const styles: Readonly<Partial<Record<WatchEvent["type"], Style>>> = { granted: "green", lost: "red", gap: "yellow" };
const typeWidth = "delay_ended".length;

/** Index first: it is the order of the log, and rises. */
export function eventText(event: WatchEvent, paint: Paint = unpainted): string {
  const at = String(event.index).padStart(8);
  const style = styles[event.type];
  const type = style === undefined ? event.type : paint(style, event.type);
  const space = " ".repeat(typeWidth - event.type.length);
  if (event.type === "gap") return `${at}  ${type}${space}  changes up to here may be missing\n`;
  const place = event.slot === null ? "" : `  place ${event.slot}`;
  const token = event.type === "delay_ended" ? "" : `  token ${event.token}`;
  return `${at}  ${type}${space}  ${plain(event.name)}${token}${place}\n`;
}
