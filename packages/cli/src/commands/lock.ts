/** `holdfast lock NAME -- CMD`: runs a command while it holds a lock. */
import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import path from "node:path";
import { HoldfastError } from "@holdfast/client";
import type { Holdfast, Lock } from "@holdfast/client";
import type { Command } from "commander";
import { CommandFailure } from "../command-failure.js";
import { connectFor, dayMs, endpointsFor, lockDelayBounds, withCluster } from "../context.js";
import type { ClusterOptions, Context } from "../context.js";
import { durationFlag, durationOption, formatDuration, integerOption } from "../durations.js";
import { exitCodes } from "../exit-codes.js";
import { clientText } from "../failures.js";
import type { Io } from "../io.js";
import { CommandRunner } from "../lock/command-runner.js";
import type { Lease, RunResult } from "../lock/command-runner.js";
import { LeaderNote } from "../lock/leader-note.js";
import { SignalRelay } from "../lock/signal-relay.js";
import { json, plain } from "../output.js";
import { processTable } from "../process-table.js";

interface LockOptions extends ClusterOptions {
  readonly ttl: number;
  /** Milliseconds; false for --no-wait; undefined: without limit. */
  readonly wait?: number | boolean;
  readonly shared?: boolean;
  readonly slots?: number;
  readonly lockDelay: number;
  readonly grace?: number;
  readonly conflictExitCode: number;
  readonly lostExitCode: number;
}

/** What the environment of CMD bears, and nothing else on the machine. */
const markName = "HOLDFAST_RUN";
const conflicts: ReadonlySet<string> = new Set(["lock_held", "lock_delayed", "wait_timeout"]);
/** Of the protocol's limits. */
const slotsMax = 1_024;
/** A keepalive goes out at every third of the TTL: until the next one at least this part of it is left, less the margins. */
const graceParts = 3;

export function addLockCommand(program: Command, context: Context): void {
  const upToDay = { minMs: 0, maxMs: dayMs };
  const exitCode = integerOption(0, 255);
  withCluster(program.command("lock"))
    .description("run a command while holding a lock; its exit code is passed on")
    .usage("[options] <name> -- <command...>")
    .argument("<name>", "the lock")
    .argument("[command...]", "what to run, after --")
    .addOption(
      durationFlag("--ttl <duration>", "how long the lock outlives this process", { minMs: 1, maxMs: dayMs }, 10_000),
    )
    .option(
      "--wait <duration>",
      "how long to wait for the lock (default: without limit)",
      durationOption({ minMs: 0, maxMs: 365 * dayMs }),
    )
    .option("--no-wait", "give up at once when the lock isn't free")
    .option("--shared", "hold it together with other shared holders")
    .option("--slots <number>", "take one of so many places of a semaphore", integerOption(1, slotsMax))
    .addOption(
      durationFlag("--lock-delay <duration>", "keep the lock closed for so long if it is lost", lockDelayBounds, 0),
    )
    .option(
      "--grace <duration>",
      "time between SIGTERM and SIGKILL when it can't be renewed (default: a fifth of --ttl)",
      durationOption(upToDay),
    )
    .option("--conflict-exit-code <code>", "when the lock isn't obtained", exitCode, exitCodes.notObtained)
    .option("--lost-exit-code <code>", "when the lock is lost while the command runs", exitCode, exitCodes.lost)
    .action(async (name: string, operands: readonly string[], options: LockOptions, command: Command) => {
      const words = commandWords(command, operands);
      if (name === "") throw new CommandFailure("usage", "usage", "NAME must not be empty");
      checkWaits(command);
      if (options.shared === true && options.slots !== undefined)
        throw new CommandFailure("usage", "usage", "--shared and --slots can't be used together");
      context.setExitCode(await holdAndRun(name, words, options, context.io));
    });
}

/** Everything after `--`, as it is. */
function commandWords(command: Command, operands: readonly string[]): readonly [string, ...string[]] {
  const raw = rootOf(command).args;
  const dashes = raw.indexOf("--");
  const [file, ...args] = dashes === -1 ? [] : raw.slice(dashes + 1);
  if (file === undefined || args.length + 1 !== operands.length) {
    throw new CommandFailure("usage", "usage", "write the command to run after --: holdfast lock NAME -- CMD...");
  }
  if (file === "") throw new CommandFailure("usage", "usage", "CMD is empty: the first word after -- names a program");
  return [file, ...args];
}

/** Commander takes --wait and --no-wait for one option, of which the last counts. */
function checkWaits(command: Command): void {
  const raw = rootOf(command).args;
  const own = raw.slice(0, raw.indexOf("--"));
  if (own.includes("--no-wait") && own.some((word) => word === "--wait" || word.startsWith("--wait=")))
    throw new CommandFailure("usage", "usage", "--wait and --no-wait can't be used together");
}

function rootOf(command: Command): Command {
  return command.parent === null ? command : rootOf(command.parent);
}

async function holdAndRun(
  name: string,
  words: readonly [string, ...string[]],
  options: LockOptions,
  io: Io,
): Promise<number> {
  const graceMs = graceFor(options);
  const relay = new SignalRelay(process);
  const note = new LeaderNote(() => {
    // With --json stderr is for errors alone.
    if (options.json !== true) io.err("holdfast: no leader of the cluster is found yet; waiting on\n");
  });
  let holdfast: Holdfast | null = null;
  try {
    holdfast = await unlessAborted(
      connectFor(options, io, { ttlMs: options.ttl, info: infoFor(words[0]), logger: note.logger }),
      relay.waiting,
    );
    const lock = await acquire(holdfast, name, options, relay.waiting);
    note.cancel();
    const result = await runUnder(lock, { name, words, graceMs }, options, io, relay);
    return await finish(lock, result, options, io);
  } finally {
    note.cancel();
    relay.close();
    await holdfast?.close();
  }
}

function graceFor({ grace, ttl }: LockOptions): number {
  const graceMs = grace ?? Math.round(ttl / 5);
  if (graceMs <= ttl / graceParts) return graceMs;
  const most = formatDuration(Math.floor(ttl / graceParts));
  throw new CommandFailure(
    "usage",
    "usage",
    `--grace ${formatDuration(graceMs)} is more than a third of --ttl: at most ${most}`,
  );
}

/** Who holds it, for people; the command's arguments may hold secrets and stay here. */
function infoFor(file: string): string {
  return `${hostname()}:${process.pid} ${path.basename(file)}`.slice(0, 256);
}

async function unlessAborted(connecting: Promise<Holdfast>, signal: AbortSignal): Promise<Holdfast> {
  const aborted = new Promise<never>((_, reject) => {
    const abort = (): void => reject(signal.reason as Error);
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort, { once: true });
  });
  try {
    return await Promise.race([connecting, aborted]);
  } catch (error) {
    // It may still succeed; the process ends anyway.
    connecting.then((holdfast) => holdfast.close()).catch(() => undefined);
    throw error;
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

function runUnder(
  lock: Lock,
  run: { readonly name: string; readonly words: readonly [string, ...string[]]; readonly graceMs: number },
  options: LockOptions,
  io: Io,
  relay: SignalRelay,
): Promise<RunResult> {
  const id = randomUUID();
  const environment = {
    HOLDFAST_LOCK: run.name,
    HOLDFAST_TOKEN: String(lock.token),
    ...(lock.slot === null ? {} : { HOLDFAST_SLOT: String(lock.slot) }),
    HOLDFAST_ENDPOINTS: endpointsFor(options, io),
    [markName]: id,
  };
  const runner = new CommandRunner(
    { words: run.words, environment, mark: `${markName}=${id}`, graceMs: run.graceMs, isInteractive: io.isInteractive },
    { lease: leaseOf(lock), table: processTable() },
  );
  relay.to((name) => runner.forward(name));
  return runner.run();
}

function leaseOf(lock: Lock): Lease {
  return { remainingMs: () => lock.remainingMs(), lossReason: () => lock.lossReason, signal: lock.signal };
}

/** The exit code, after the lock is given back. */
async function finish(lock: Lock, result: RunResult, options: LockOptions, io: Io): Promise<number> {
  const name = plain(lock.name);
  const tell = (code: string, message: string): void =>
    io.err(options.json === true ? json({ error: { code, message } }) : `holdfast: ${message}\n`);
  const released = await lock.release();
  switch (result.kind) {
    case "notStarted":
      tell("not_started", result.problem);
      return result.code;
    case "lost": {
      const left = result.survivors.length === 0 ? "" : `; could not be stopped: ${result.survivors.join(", ")}`;
      const why = result.reason === "not_renewed" ? "could not be renewed in time" : `is lost (${result.reason})`;
      tell("lock_lost", `the lock on ${name} ${why}: the command was stopped${left}`);
      return options.lostExitCode;
    }
    case "ended":
      // The command ended while the lock was held; that the release went unanswered takes nothing from that.
      if (released === "already-lost")
        tell("release_unconfirmed", `the release of ${name} was not confirmed: it is free when its lease ends`);
      return result.code;
  }
}
