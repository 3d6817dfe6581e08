/** The command line: commands, options, and how each way to fail ends. */
import { readFileSync } from "node:fs";
import { Command } from "commander";
import { addBackupCommand } from "./commands/backup.js";
import { addBenchCommand } from "./commands/bench.js";
import { addDevCommand } from "./commands/dev.js";
import { addDoctorCommand } from "./commands/doctor.js";
import { addLockCommand } from "./commands/lock.js";
import { addMemberCommand } from "./commands/member.js";
import { addNodeCommand } from "./commands/node.js";
import { addQueryCommands } from "./commands/queries.js";
import { addReleaseCommand } from "./commands/release.js";
import { addRestoreCommand } from "./commands/restore.js";
import { addStatusCommand } from "./commands/status.js";
import { addTransferCommand } from "./commands/transfer.js";
import { addUpgradeCommand } from "./commands/upgrade.js";
import type { Context } from "./context.js";
import { exitCodes } from "./exit-codes.js";
import { failureOf, failureText } from "./failures.js";
import type { Io } from "./io.js";

/** Runs one command; `words` without node and program. Resolves with the exit code, never rejects. */
export async function runCli(words: readonly string[], io: Io): Promise<number> {
  let exitCode: number = exitCodes.ok;
  const context: Context = { io, setExitCode: (code) => void (exitCode = code) };
  try {
    await createProgram(context).parseAsync(words, { from: "user" });
    return exitCode;
  } catch (error) {
    const failure = failureOf(error);
    if (failure.exitCode !== exitCodes.ok && failure.message !== "") io.err(failureText(failure, asksForJson(words)));
    return failure.exitCode;
  }
}

function createProgram(context: Context): Command {
  const program = new Command("holdfast");
  program
    .description("A replicated lock service whose locks bear fencing tokens")
    .version(version(), "--version", "print the version")
    .helpCommand(true)
    // Options of commands come after the command; what stands after -- belongs to CMD, whatever it looks like.
    .enablePositionalOptions()
    .exitOverride()
    .configureOutput({
      writeOut: (text) => context.io.out(text),
      writeErr: (text) => context.io.err(text),
      outputError: () => undefined, // runCli says what went wrong, as text or as JSON
    })
    .addHelpText("after", "\nExit codes and examples: docs/cli.md");
  addDevCommand(program, context);
  addNodeCommand(program, context);
  addLockCommand(program, context);
  addStatusCommand(program, context);
  addDoctorCommand(program, context);
  addQueryCommands(program, context);
  addReleaseCommand(program, context);
  addTransferCommand(program, context);
  addMemberCommand(program, context);
  addUpgradeCommand(program, context);
  addBackupCommand(program, context);
  addRestoreCommand(program, context);
  addBenchCommand(program, context);
  return program;
}

/** Known before the options are: an error in them is printed in the form that was asked for. */
function asksForJson(words: readonly string[]): boolean {
  const end = words.indexOf("--");
  return words.slice(0, end === -1 ? words.length : end).includes("--json");
}

function version(): string {
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  return (JSON.parse(text) as { readonly version: string }).version;
}
