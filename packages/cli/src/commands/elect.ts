/** `holdfast elect NAME -- CMD`: runs a command on one machine at a time, here as soon as it is this one's turn. */
import type { Command } from "commander";
import { CommandFailure } from "../command-failure.js";
import { withCluster } from "../context.js";
import type { Context } from "../context.js";
import { exitCodes } from "../exit-codes.js";
import { commandWords, HeldCommand, withHold } from "../lock/held-command.js";
import type { HoldOptions } from "../lock/held-command.js";

export function addElectCommand(program: Command, context: Context): void {
  withHold(withCluster(program.command("elect")))
    .description("run a command while elected; campaign again when the leadership is lost")
    .usage("[options] <name> -- <command...>")
    .argument("<name>", "the election: a lock of this name")
    .argument("[command...]", "what to run, after --")
    .action(async (name: string, operands: readonly string[], options: HoldOptions, command: Command) => {
      const words = commandWords(command, operands);
      if (name === "") throw new CommandFailure("usage", "usage", "NAME must not be empty");
      context.setExitCode(await campaign(name, options, new HeldCommand(name, words, options, context.io)));
    });
}

/** Ends when CMD ends by itself, or at a signal. */
async function campaign(name: string, { lockDelay }: HoldOptions, held: HeldCommand): Promise<number> {
  const asked = { waitMs: Number.POSITIVE_INFINITY, lockDelayMs: lockDelay };
  try {
    await held.connect();
    for (;;) {
      const term = await held.wait((holdfast, signal) => holdfast.acquire(name, { ...asked, signal }));
      const result = await held.run(term);
      if (result.kind !== "lost") {
        await held.release(term);
        if (result.kind === "notStarted") held.tell("not_started", result.problem);
        return result.code;
      }
      await term.release();
      // What could not be stopped must not meet its successor here.
      if (result.survivors.length > 0) {
        held.tellLost(term, result);
        return exitCodes.lost;
      }
      held.tellLost(term, result, "; campaigning again");
    }
  } finally {
    await held.close();
  }
}
