/** The command line: commands, options, and how each way to fail ends. */
import { readFileSync } from "node:fs";
import { Command } from "commander";
import type { Context } from "./context.js";
import { exitCodes } from "./exit-codes.js";
import { failureOf, failureText } from "./failures.js";
import { unlessInterrupted } from "./interruption.js";
import type { Io } from "./io.js";
import type { SignalSource } from "./lock/signal-relay.js";

type AddCommand = (program: Command, context: Context) => void;

/** In the order of the help. A command's modules are loaded when it is called: a node doesn't wait for those of the clients. */
const commands: Readonly<Record<string, () => Promise<AddCommand>>> = {
  dev: async () => (await import("./commands/dev.js")).addDevCommand,
  node: async () => (await import("./commands/node.js")).addNodeCommand,
  lock: async () => (await import("./commands/lock.js")).addLockCommand,
  elect: async () => (await import("./commands/elect.js")).addElectCommand,
  status: async () => (await import("./commands/status.js")).addStatusCommand,
  doctor: async () => (await import("./commands/doctor.js")).addDoctorCommand,
  ls: async () => (await import("./commands/queries.js")).addLsCommand,
  show: async () => (await import("./commands/queries.js")).addShowCommand,
  watch: async () => (await import("./commands/watch.js")).addWatchCommand,
  check: async () => (await import("./commands/check.js")).addCheckCommand,
  release: async () => (await import("./commands/release.js")).addReleaseCommand,
  transfer: async () => (await import("./commands/transfer.js")).addTransferCommand,
  member: async () => (await import("./commands/member.js")).addMemberCommand,
  key: async () => (await import("./commands/key.js")).addKeyCommand,
  upgrade: async () => (await import("./commands/upgrade.js")).addUpgradeCommand,
  backup: async () => (await import("./commands/backup.js")).addBackupCommand,
  restore: async () => (await import("./commands/restore.js")).addRestoreCommand,
  bench: async () => (await import("./commands/bench.js")).addBenchCommand,
  completion: async () => (await import("./commands/completion.js")).addCompletionCommands,
};

/** They look after signals themselves: what they have begun ends in order. */
const withSignalsOfTheirOwn: readonly string[] = ["dev", "node", "lock", "elect", "bench"];

/**
 * Runs one command; `words` without node and program. Resolves with the exit code, never rejects. Without `signals` none is heard, but by
 * commands that look after them themselves.
 */
export async function runCli(words: readonly string[], io: Io, signals: SignalSource | null = null): Promise<number> {
  let exitCode: number = exitCodes.ok;
  const context: Context = { io, setExitCode: (code) => void (exitCode = code) };
  const run = async (): Promise<void> => {
    const program = createProgram(context);
    for (const add of await commandsFor(words)) add(program, context);
    await program.parseAsync(words, { from: "user" });
  };
  try {
    const isHeard = signals !== null && !withSignalsOfTheirOwn.includes(words[0] ?? "");
    await (isHeard ? unlessInterrupted(run(), signals) : run());
    return exitCode;
  } catch (error) {
    const failure = failureOf(error);
    if (failure.exitCode !== exitCodes.ok && failure.message !== "") io.err(failureText(failure, asksForJson(words)));
    return failure.exitCode;
  }
}

/** For who completes these words at a key: with the command that they name, or else with all names, and nothing behind them. */
export async function programFor(words: readonly string[], context: Context): Promise<Command> {
  const program = createProgram(context);
  const [name = ""] = words;
  const load = words.length > 1 && Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (load !== undefined) (await load())(program, context);
  else for (const each of Object.keys(commands)) program.command(each);
  return program;
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
  return program;
}

/** The one that is called; all of them for the help, and to find what a misspelt name resembles. */
async function commandsFor([name = ""]: readonly string[]): Promise<readonly AddCommand[]> {
  const known = name === "complete" ? "completion" : name;
  const called = Object.hasOwn(commands, known) ? commands[known] : undefined;
  return Promise.all((called === undefined ? Object.values(commands) : [called]).map((load) => load()));
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
