/**
 * The processes that are started here. None outlives this one: it ends them at its exit, and the kernel does when it is killed. Each leads
 * a group of its own, so that a terminal's Ctrl-C comes here alone.
 */
import { spawn } from "node:child_process";
import { closeSync, mkdirSync, openSync, readFileSync } from "node:fs";
import path from "node:path";

/** @type {Set<Started>} */
const running = new Set();

/** From here on the kernel ends it with its parent, but that may have been killed just before. The shell's PPID is from its start. */
const runWithParent = '[ "$PPID" = "$0" ] && exec "$@"';

/** How much of a log an error message shows. */
const tailLines = 12;

/**
 * @typedef {object} StartOptions
 * @property {string} folder Where it runs and where its log lies; made when missing.
 * @property {Readonly<Record<string, string>> | undefined} [environment] On top of this process's own.
 * @property {boolean | undefined} [hasChannel] A channel for messages, for programs that are Node's.
 */

export class Started {
  /** @type {import("node:child_process").ChildProcess} */
  #child;
  #isRunning = true;
  #logFile;
  /** It was sent SIGKILL; it may not have ended yet. */
  isBeingKilled = false;

  /**
   * @param {string} name For messages, and of its log.
   * @param {readonly string[]} words The program and its arguments.
   * @param {StartOptions} options
   */
  constructor(name, words, { folder, environment = {}, hasChannel = false }) {
    this.name = name;
    mkdirSync(folder, { recursive: true });
    this.#logFile = path.join(folder, `${name}.log`);
    const log = openSync(this.#logFile, "a");
    this.#child = spawn(
      "setpriv",
      ["--pdeathsig", "KILL", "--", "sh", "-c", runWithParent, `${process.pid}`, ...words],
      {
        cwd: folder,
        detached: true,
        env: { ...process.env, ...environment },
        stdio: hasChannel ? ["ignore", log, log, "ipc"] : ["ignore", log, log],
      },
    );
    closeSync(log);
    running.add(this);
    /** @type {Promise<void>} */
    this.ended = new Promise((resolve) => {
      const end = () => {
        this.#isRunning = false;
        running.delete(this);
        resolve();
      };
      this.#child.once("exit", end);
      this.#child.once("error", () => {
        if (this.#child.pid === undefined) end();
      });
    });
  }

  get isRunning() {
    return this.#isRunning;
  }

  /** Throws when it has ended. */
  get pid() {
    this.assertRuns();
    return this.#child.pid ?? 0;
  }

  assertRuns() {
    if (!this.#isRunning) throw new Error(`${this.name} has ended:\n${this.#tail()}`);
  }

  /** SIGKILL to the whole group; resolves when it has ended. */
  async kill() {
    this.killNow();
    await this.ended;
  }

  killNow() {
    if (!this.#isRunning || this.#child.pid === undefined) return;
    this.isBeingKilled = true;
    try {
      process.kill(-this.#child.pid, "SIGKILL");
    } catch {
      // The whole group has ended already.
    }
  }

  /**
   * Sends a message and resolves with the next one that comes. Rejects when the process ends first.
   * @param {object} message
   * @returns {Promise<Record<string, number>>}
   */
  async ask(message) {
    this.assertRuns();
    const answer = this.next();
    this.#child.send(message);
    return answer;
  }

  /**
   * The next message that comes. Rejects when the process ends first.
   * @returns {Promise<Record<string, number>>}
   */
  next() {
    return new Promise((resolve, reject) => {
      const onEnd = () => reject(new Error(`${this.name} has ended:\n${this.#tail()}`));
      this.#child.once("exit", onEnd);
      this.#child.once("message", (answer) => {
        this.#child.off("exit", onEnd);
        resolve(/** @type {Record<string, number>} */ (answer));
      });
    });
  }

  #tail() {
    return readFileSync(this.#logFile, "utf8").trimEnd().split("\n").slice(-tailLines).join("\n");
  }
}

/** At the exit of this process. */
export function killAll() {
  for (const each of running) each.killNow();
}
