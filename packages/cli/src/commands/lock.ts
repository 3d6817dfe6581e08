/** `holdfast lock NAME -- CMD`: runs a command while it holds a lock. */
import { HoldfastError } from "@holdfast/client";
import type { Holdfast, Lock } from "@holdfast/client";
import type { Command } from "commander";
import { CommandFailure } from "../command-failure.js";
import { dayMs, withCluster } from "../context.js";
import type { Context } from "../context.js";
import { durationOption, integerOption } from "../durations.js";
import { exitCodes } from "../exit-codes.js";
import { clientText } from "../failures.js";
import { commandWords, HeldCommand, rootOf, withHold } from "../lock/held-command.js";
import type { HoldOptions } from "../lock/held-command.js";

interface LockOptions extends HoldOptions {
  /** Milliseconds; false for --no-wait; undefined: without limit. */
  readonly wait?: number | boolean;
  readonly shared?: boolean;
  readonly slots?: number;
  readonly conflictExitCode: number;
  readonly lostExitCode: number;
}

const conflicts: ReadonlySet<string> = new Set(["lock_held", "lock_delayed", "wait_timeout"]);
/** Of the protocol's limits. */
const slotsMax = 1_024;

export function addLockCommand(program: Command, context: Context): void {
  const exitCode = integerOption(0, 255);
  withHold(withCluster(program.command("lock")))
    .description("run a command while holding a lock; its exit code is passed on")
    .usage("[options] <name> -- <command...>")
    .argument("<name>", "the lock")
    .argument("[command...]", "what to run, after --")
    .option(
      "--wait <duration>",
      "how long to wait for the lock (default: without limit)",
      durationOption({ minMs: 0, maxMs: 365 * dayMs }),
    )
    .option("--no-wait", "give up at once when the lock isn't free")
    .option("--shared", "hold it together with other shared holders")
    .option("--slots <number>", "take one of so many places of a semaphore", integerOption(1, slotsMax))
    .option("--conflict-exit-code <code>", "when the lock isn't obtained", exitCode, exitCodes.notObtained)
    .option("--lost-exit-code <code>", "when the lock is lost while the command runs", exitCode, exitCodes.lost)
    .action(async (name: string, operands: readonly string[], options: LockOptions, command: Command) => {
      const words = commandWords(command, operands);
      if (name === "") throw new CommandFailure("usage", "usage", "NAME must not be empty");
      checkWaits(command);
      if (options.shared === true && options.slots !== undefined)
        throw new CommandFailure("usage", "usage", "--shared and --slots can't be used together");
      context.setExitCode(await holdAndRun(name, options, new HeldCommand(name, words, options, context.io)));
    });
}

/** Commander takes --wait and --no-wait for one option, of which the last counts. */
function checkWaits(command: Command): void {
  const raw = rootOf(command).args;
  const own = raw.slice(0, raw.indexOf("--"));
  if (own.includes("--no-wait") && own.some((word) => word === "--wait" || word.startsWith("--wait=")))
    throw new CommandFailure("usage", "usage", "--wait and --no-wait can't be used together");
}

async function holdAndRun(name: string, options: LockOptions, held: HeldCommand): Promise<number> {
  try {
    await held.connect();
    const lock = await held.wait((holdfast, signal) => acquire(holdfast, name, options, signal));
    const result = await held.run(lock);
    if (result.kind === "lost") {
      await lock.release();
      held.tellLost(lock, result);
      return options.lostExitCode;
    }
    await held.release(lock);
    if (result.kind === "notStarted") held.tell("not_started", result.problem);
    return result.code;
  } finally {
    await held.close();
  }
}

async function acquire(holdfast: Holdfast, name: string, options: LockOptions, signal: AbortSignal): Promise<Lock> {
  const { wait, shared, slots, lockDelay } = options;
  const waitMs = typeof wait === "number" ? wait : wait === false ? 0 : Number.POSITIVE_INFINITY;
  const asked = { waitMs, signal, lockDelayMs: lockDelay };
  try {
    if (slots !== undefined) return await holdfast.semaphore(name, { slots }).acquire(asked);
    return await holdfast.acquire(name, { ...asked, mode: shared === true ? "shared" : "exclusive" });
  } catch (error) {
    if (!(error instanceof HoldfastError) || !conflicts.has(error.code)) throw error;
    throw new CommandFailure(options.conflictExitCode, error.code, clientText(error));
  }
}
