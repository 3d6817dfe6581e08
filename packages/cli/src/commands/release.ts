/** `holdfast release --force`: an administrator ends a generation. */
import type { Command } from "commander";
import { CommandFailure } from "../command-failure.js";
import { lockDelayBounds, withClient, withCluster } from "../context.js";
import type { ClusterOptions, Context } from "../context.js";
import { durationFlag, integerOption } from "../durations.js";
import { json, plain } from "../output.js";
import { principal } from "../principal.js";

interface ReleaseOptions extends ClusterOptions {
  readonly token: number;
  readonly force?: boolean;
  readonly lockDelay: number;
}

export function addReleaseCommand(program: Command, context: Context): void {
  withCluster(program.command("release"))
    .description("take a lock from its holder, who hears of it only by message")
    .argument("<name>", "the lock")
    .requiredOption(
      "--token <token>",
      "the token of the generation to end (see show)",
      integerOption(1, Number.MAX_SAFE_INTEGER),
    )
    .option("--force", "say that you mean it")
    .addOption(durationFlag("--lock-delay <duration>", "keep the lock closed for so long", lockDelayBounds, 0))
    .action(async (name: string, options: ReleaseOptions) => {
      const { token, lockDelay } = options;
      if (options.force !== true) {
        throw new CommandFailure(
          "usage",
          "usage",
          "release takes the lock from a holder that may be at work: add --force",
        );
      }
      const forced = await withClient(options, context.io, (holdfast) =>
        holdfast.forceRelease(name, token, { lockDelayMs: lockDelay, principal: principal() }),
      );
      if (forced.ended === 0) {
        const now = forced.holders === 0 ? "nobody holds it" : `${forced.holders} hold it under another token`;
        throw new CommandFailure(
          "error",
          "stale_token",
          `no generation of ${plain(name)} bears token ${token}: ${now}`,
        );
      }
      if (options.json === true) context.io.out(json({ name, token, ended: forced.ended }));
      else
        context.io.out(
          `released ${plain(name)}: ${forced.ended} hold${forced.ended === 1 ? "" : "s"} with token ${token}\n`,
        );
    });
}
