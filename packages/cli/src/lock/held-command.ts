/** What the commands share that run CMD while they hold something: their options, the words of CMD, and its run under the hold. */
import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import path from "node:path";
import { HoldfastError, LockLostError } from "@holdfast/client";
import type { Holdfast, Lock } from "@holdfast/client";
import type { Command } from "commander";
import { CommandFailure } from "../command-failure.js";
import { connectFor, dayMs, endpointsFor, lockDelayBounds } from "../context.js";
import type { ClusterOptions } from "../context.js";
import { durationFlag, durationOption, formatDuration } from "../durations.js";
import type { Io } from "../io.js";
import { json, plain } from "../output.js";
import { processTable } from "../process-table.js";
import { CommandRunner } from "./command-runner.js";
import type { Lease, RunResult } from "./command-runner.js";
import { LeaderNote } from "./leader-note.js";
import { SignalRelay } from "./signal-relay.js";
import { WaitLine } from "./wait-line.js";

export type Words = readonly [string, ...string[]];

export interface HoldOptions extends ClusterOptions {
  readonly ttl: number;
  readonly lockDelay: number;
  readonly grace?: number;
}

/** What the environment of CMD bears, and nothing else on the machine. */
const markName = "HOLDFAST_RUN";
/** A keepalive goes out at every third of the TTL: until the next one at least this part of it is left, less the margins. */
const graceParts = 3;

/** The options of every such command. */
export function withHold(command: Command): Command {
  return command
    .addOption(
      durationFlag("--ttl <duration>", "how long the lock outlives this process", { minMs: 1, maxMs: dayMs }, 10_000),
    )
    .addOption(
      durationFlag("--lock-delay <duration>", "keep the lock closed for so long if it is lost", lockDelayBounds, 0),
    )
    .option(
      "--grace <duration>",
      "time between SIGTERM and SIGKILL when it can't be renewed (default: a fifth of --ttl)",
      durationOption({ minMs: 0, maxMs: dayMs }),
    );
}

/** Everything after `--`, as it is. */
export function commandWords(command: Command, operands: readonly string[]): Words {
  const raw = rootOf(command).args;
  const dashes = raw.indexOf("--");
  const [file, ...args] = dashes === -1 ? [] : raw.slice(dashes + 1);
  if (file === undefined || args.length + 1 !== operands.length) {
    const usage = `holdfast ${command.name()} NAME -- CMD...`;
    throw new CommandFailure("usage", "usage", `write the command to run after --: ${usage}`);
  }
  if (file === "") throw new CommandFailure("usage", "usage", "CMD is empty: the first word after -- names a program");
  return [file, ...args];
}

export function rootOf(command: Command): Command {
  return command.parent === null ? command : rootOf(command.parent);
}

/** One call of such a command: connected, waiting and running as often as it takes, closed at the end. */
export class HeldCommand {
  readonly relay: SignalRelay = new SignalRelay(process);
  readonly #name: string;
  readonly #words: Words;
  readonly #options: HoldOptions;
  readonly #io: Io;
  readonly #graceMs: number;
  readonly #info: string;
  readonly #note: LeaderNote;
  readonly #line: WaitLine;
  #holdfast: Holdfast | null = null;
  /** The first one begins with the connection. */
  #waits = 0;

  /** Throws CommandFailure("usage") when the grace doesn't fit. */
  constructor(name: string, words: Words, options: HoldOptions, io: Io) {
    this.#name = name;
    this.#words = words;
    this.#options = options;
    this.#io = io;
    this.#graceMs = graceFor(options);
    this.#info = infoFor(words[0]);
    // With --json stderr is for errors alone.
    const isStatusLine = io.isStatusLine && options.json !== true;
    this.#line = new WaitLine(name, this.#info, { err: (text) => io.err(text), isStatusLine });
    this.#note = new LeaderNote(() => {
      if (options.json !== true) this.#line.say("holdfast: no leader of the cluster is found yet; waiting on\n");
    });
  }

  async connect(): Promise<void> {
    const more = { ttlMs: this.#options.ttl, info: this.#info, logger: this.#note.logger };
    this.#holdfast = await unlessAborted(connectFor(this.#options, this.#io, more), this.relay.waiting);
  }

  /** As `acquire` does; meanwhile a person at a terminal sees for whom it waits. */
  async wait(acquire: (holdfast: Holdfast, signal: AbortSignal) => Promise<Lock>): Promise<Lock> {
    const holdfast = this.#holdfast;
    if (holdfast === null) throw new Error("broken invariant: connected before it waits");
    if (this.#waits++ > 0) this.#note.start();
    this.#line.start(() => holdfast.inspect(this.#name));
    try {
      return await acquire(holdfast, this.relay.waiting);
    } finally {
      this.#note.cancel();
      this.#line.stop();
    }
  }

  /** Signals go to CMD while it runs. Rejects only before that: when a signal comes, or the cluster doesn't say whether it signs. */
  async run(lock: Lock): Promise<RunResult> {
    let sequencer: string | null;
    try {
      sequencer = await this.#sequencerOf(lock);
    } catch (error) {
      if (!(error instanceof LockLostError)) throw error;
      return { kind: "lost", reason: error.reason, survivors: [] };
    }
    const id = randomUUID();
    const environment = {
      HOLDFAST_LOCK: this.#name,
      HOLDFAST_TOKEN: String(lock.token),
      ...(lock.slot === null ? {} : { HOLDFAST_SLOT: String(lock.slot) }),
      ...(sequencer === null ? {} : { HOLDFAST_SEQUENCER: sequencer }),
      HOLDFAST_ENDPOINTS: endpointsFor(this.#options, this.#io),
      [markName]: id,
    };
    const mark = `${markName}=${id}`;
    const { isInteractive } = this.#io;
    const runner = new CommandRunner(
      { words: this.#words, environment, mark, graceMs: this.#graceMs, isInteractive },
      { lease: leaseOf(lock), table: processTable() },
    );
    this.relay.to((name) => runner.forward(name));
    try {
      return await runner.run();
    } finally {
      this.relay.to(null);
    }
  }

  /** Null when the cluster signs none: its release, or its version, knows of no keys. */
  async #sequencerOf(lock: Lock): Promise<string | null> {
    try {
      return await orAborted(lock.sequencer(), this.relay.waiting);
    } catch (error) {
      if (error instanceof HoldfastError && error.code === "incompatible") return null;
      throw error;
    }
  }

  /** Gives the lock back after a run that did not lose it. */
  async release(lock: Lock): Promise<void> {
    // The command ended while the lock was held; that the release went unanswered takes nothing from that.
    if ((await lock.release()) !== "already-lost") return;
    const problem = `the release of ${plain(lock.name)} was not confirmed: it is free when its lease ends`;
    this.tell("release_unconfirmed", problem);
  }

  /** What isn't the end of the command, or doesn't change its exit code. */
  tell(code: string, message: string): void {
    this.#io.err(this.#options.json === true ? json({ error: { code, message } }) : `holdfast: ${message}\n`);
  }

  /** Tells the loss. */
  tellLost(lock: Lock, { reason, survivors }: Extract<RunResult, { kind: "lost" }>, more: string = ""): void {
    const left = survivors.length === 0 ? "" : `; could not be stopped: ${survivors.join(", ")}`;
    const why = reason === "not_renewed" ? "could not be renewed in time" : `is lost (${reason})`;
    this.tell("lock_lost", `the lock on ${plain(lock.name)} ${why}: the command was stopped${left}${more}`);
  }

  async close(): Promise<void> {
    this.#note.cancel();
    this.#line.stop();
    this.relay.close();
    await this.#holdfast?.close();
  }
}

function graceFor({ grace, ttl }: HoldOptions): number {
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

/** What the promise comes to; at an abort, the signal's reason. */
function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = new Promise<never>((_, reject) => {
    const abort = (): void => reject(signal.reason as Error);
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort, { once: true });
  });
  return Promise.race([promise, aborted]);
}

async function unlessAborted(connecting: Promise<Holdfast>, signal: AbortSignal): Promise<Holdfast> {
  try {
    return await orAborted(connecting, signal);
  } catch (error) {
    // It may still succeed; the process ends anyway.
    connecting.then((holdfast) => holdfast.close()).catch(() => undefined);
    throw error;
  }
}

function leaseOf(lock: Lock): Lease {
  return { remainingMs: () => lock.remainingMs(), lossReason: () => lock.lossReason, signal: lock.signal };
}
