/**
 * Runs a command under a lease, and stops everything that it started before the lease can pass to another: SIGTERM when `graceMs`
 * of the lease are left, SIGKILL at its end.
 */
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { constants } from "node:os";
import { ProcessFamily, send } from "./process-family.js";
import { plain } from "../output.js";
import type { ProcessTable } from "../process-table.js";

/** What the runner needs to know of a lock. */
export interface Lease {
  /** By the client's clock, looked at afresh; 0 when it is lost. */
  remainingMs(): number;
  /** Why it is lost, null while it isn't. */
  lossReason(): string | null;
  /** Aborts at the loss. */
  readonly signal: AbortSignal;
}

export interface RunOptions {
  readonly words: readonly [string, ...string[]];
  /** Added to this process's own environment. */
  readonly environment: Readonly<Record<string, string>>;
  /** One of `environment`: "NAME=value" that nothing but this run bears. */
  readonly mark: string;
  /** From when on the command is being stopped, before the end of the lease. */
  readonly graceMs: number;
  /**
   * Stdin is a terminal: the command stays in this process's group, or it could not read from the terminal; and the terminal's own
   * signals (Ctrl-C) reach it without us.
   */
  readonly isInteractive: boolean;
}

export type RunResult =
  /** `code` as a shell counts: 128 + n for a signal. */
  | { readonly kind: "ended"; readonly code: number }
  /** The lease ended or was about to; everything was stopped. `survivors`: processes of another user that could not be. */
  | { readonly kind: "lost"; readonly reason: string; readonly survivors: readonly number[] }
  | { readonly kind: "notStarted"; readonly code: 126 | 127; readonly problem: string };

/** A suspended machine or a stopped process wakes with its lease gone: the clock is looked at this often at least. */
const lookMs = 1_000;
const stopPollMs = 25;
/** Killed processes vanish within this time, or never will (uninterruptible). */
const vanishMs = 2_000;
/** The kill goes out this long before the lease's end, which itself lies before the service's. */
const killLeadMs = 50;

export class CommandRunner {
  readonly #lease: Lease;
  readonly #options: RunOptions;
  readonly #table: ProcessTable;
  #child: ChildProcess | null = null;
  #family: ProcessFamily | null = null;

  constructor(options: RunOptions, parts: { readonly lease: Lease; readonly table: ProcessTable }) {
    this.#options = options;
    this.#lease = parts.lease;
    this.#table = parts.table;
  }

  /** Settles when the command has ended, or when all of it has been stopped. Never rejects. Call it once. */
  async run(): Promise<RunResult> {
    const end = this.#start();
    if (!(end instanceof Promise)) return end;
    const first = await Promise.race([end, this.#leaseIsShort(end)]);
    if (first === "short") return this.#stop();
    // A command that ended after its lease had run out may have done its last work without the lock.
    const reason = first.kind === "ended" ? this.#lossReason() : null;
    return reason === null ? first : this.#stop();
  }

  /** Passes a signal on: to the command's group, or to the command alone when it shares ours. */
  forward(name: NodeJS.Signals): void {
    const child = this.#child;
    const pid = child?.pid;
    if (pid === undefined || child?.exitCode !== null || child.signalCode !== null) return; // not yet, or no more
    if (!this.#options.isInteractive) send(-pid, name);
    else if (name !== "SIGINT" && name !== "SIGQUIT") send(pid, name); // the terminal sends those two to the whole group itself
  }

  #start(): Promise<RunResult> | RunResult {
    const [file, ...args] = this.#options.words;
    const { isInteractive, environment, mark } = this.#options;
    try {
      const env = { ...process.env, ...environment };
      const child = spawn(file, args, { stdio: "inherit", detached: !isInteractive, env });
      const end = endOf(child, file);
      this.#child = child;
      if (child.pid !== undefined) {
        this.#family = new ProcessFamily({ root: child.pid, leadsGroup: !isInteractive, mark }, this.#table);
      }
      return end;
    } catch (error) {
      return notStarted(error as NodeJS.ErrnoException, file); // too long a list of arguments, a zero byte in one
    }
  }

  #lossReason(): string | null {
    return this.#lease.lossReason() ?? (this.#lease.remainingMs() <= 0 ? "expired" : null);
  }

  /** Resolves when the command must be stopped; never when it ends before. */
  #leaseIsShort(end: Promise<unknown>): Promise<"short"> {
    return new Promise((resolve) => {
      let timer: NodeJS.Timeout | undefined;
      const look = (): void => {
        clearTimeout(timer);
        const spareMs = this.#lease.remainingMs() - this.#options.graceMs;
        if (spareMs <= 0 || this.#lease.signal.aborted) resolve("short");
        else timer = setTimeout(look, Math.min(spareMs, lookMs));
      };
      const done = (): void => {
        clearTimeout(timer);
        this.#lease.signal.removeEventListener("abort", look);
      };
      this.#lease.signal.addEventListener("abort", look);
      void end.then(done);
      look();
    });
  }

  async #stop(): Promise<RunResult> {
    const family = this.#family;
    const reason = this.#lossReason();
    if (family === null) return { kind: "lost", reason: reason ?? "not_renewed", survivors: [] };
    const killAtMs = performance.now() + this.#timeToLeave(reason);
    family.signal("SIGTERM");
    family.signal("SIGCONT"); // a stopped process sees its SIGTERM only when it goes on
    while (performance.now() < killAtMs && family.members().length > 0) {
      await sleep(Math.min(stopPollMs, Math.max(1, killAtMs - performance.now())));
    }
    const survivors = await kill(family);
    return { kind: "lost", reason: this.#lossReason() ?? "not_renewed", survivors };
  }

  /**
   * From now to SIGKILL. While the lease runs: to its end. Over: no time at all. Taken by force: the grace, since whoever forces can
   * keep the lock closed that long.
   */
  #timeToLeave(reason: string | null): number {
    if (reason === null) return Math.max(0, this.#lease.remainingMs() - killLeadMs);
    return reason === "forced" ? this.#options.graceMs : 0;
  }
}

/** Again and again, since a process may fork while it is being killed. Returns what is left. */
async function kill(family: ProcessFamily): Promise<readonly number[]> {
  family.killKnown();
  const endMs = performance.now() + vanishMs;
  let forbidden = family.signal("SIGKILL");
  for (let left = family.members(); left.length > 0 && performance.now() < endMs; left = family.members()) {
    if (left.every((pid) => forbidden.includes(pid))) return forbidden;
    await sleep(5);
    forbidden = family.signal("SIGKILL");
  }
  return family.members();
}

function endOf(child: ChildProcess, file: string): Promise<RunResult> {
  return new Promise((resolve) => {
    child.once("error", (error: NodeJS.ErrnoException) => {
      if (child.pid === undefined) resolve(notStarted(error, file));
    });
    child.once("exit", (code, name) => {
      resolve({ kind: "ended", code: code ?? 128 + (name === null ? 0 : constants.signals[name]) });
    });
  });
}

function notStarted(error: NodeJS.ErrnoException, file: string): RunResult {
  const name = plain(file);
  if (error.code === "ENOENT") return { kind: "notStarted", code: 127, problem: `${name}: command not found` };
  const problem = error.code === "EACCES" ? "permission denied" : error.message;
  return { kind: "notStarted", code: 126, problem: `${name}: ${problem}` };
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
