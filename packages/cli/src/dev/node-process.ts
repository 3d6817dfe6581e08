/** One node of a local cluster, as a child process that can't outlive this one. */
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { closeSync, fstatSync, mkdirSync, openSync, readSync, renameSync, statSync } from "node:fs";
import path from "node:path";

export interface NodeProcessOptions {
  readonly id: string;
  /** The program and its arguments. */
  readonly words: readonly [string, ...string[]];
  /** Its data folder; made when missing. */
  readonly folder: string;
}

export interface NodeEnd {
  readonly id: string;
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** Set for the children: their stdin is a pipe that closes when this process ends, however it ends. */
export const parentPipeVariable = "HOLDFAST_PARENT_PIPE";
const logBytesMax = 16 * 1024 * 1024;
const tailBytes = 8_192;

export class NodeProcess {
  readonly id: string;
  readonly logFile: string;
  readonly ended: Promise<NodeEnd>;
  readonly #child: ChildProcess;
  #isRunning = true;

  constructor(options: NodeProcessOptions) {
    this.id = options.id;
    mkdirSync(options.folder, { recursive: true });
    this.logFile = path.join(options.folder, "node.log");
    turnOver(this.logFile);
    const log = openSync(this.logFile, "a");
    const [file, ...args] = options.words;
    try {
      // A session of its own: Ctrl-C in the terminal comes to us, and we stop the nodes in order.
      this.#child = spawn(file, args, {
        stdio: ["pipe", log, log],
        detached: true,
        env: { ...process.env, [parentPipeVariable]: "1" },
      });
    } finally {
      closeSync(log);
    }
    this.#child.stdin?.on("error", () => undefined); // it has closed its end
    this.ended = this.#end();
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  get isRunning(): boolean {
    return this.#isRunning;
  }

  kill(name: NodeJS.Signals): void {
    if (this.#isRunning) this.#child.kill(name);
  }

  /** The last thing it logged as an error, or said at all: for a person to read. */
  lastWords(): string | null {
    const lines = readTail(this.logFile)
      .split("\n")
      .filter((line) => line.trim() !== "");
    const texts = lines.map(textOf);
    const lastError = texts.findLast((text) => text.isError);
    return (lastError ?? texts.at(-1))?.text ?? null;
  }

  #end(): Promise<NodeEnd> {
    return new Promise((resolve) => {
      const end = (code: number | null, signal: NodeJS.Signals | null): void => {
        this.#isRunning = false;
        resolve({ id: this.id, code, signal });
      };
      this.#child.once("exit", end);
      this.#child.once("error", () => {
        if (this.#child.pid === undefined) end(127, null);
      });
    });
  }
}

/** One older log is kept. */
function turnOver(file: string): void {
  try {
    if (statSync(file).size > logBytesMax) renameSync(file, `${file}.1`);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}

function readTail(file: string): string {
  const descriptor = openSync(file, "r");
  try {
    const { size } = fstatSync(descriptor);
    const buffer = Buffer.alloc(Math.min(size, tailBytes));
    readSync(descriptor, buffer, 0, buffer.length, size - buffer.length);
    return buffer.toString("utf8");
  } finally {
    closeSync(descriptor);
  }
}

function textOf(line: string): { text: string; isError: boolean } {
  try {
    const { msg, level } = JSON.parse(line) as { msg?: unknown; level?: unknown };
    if (typeof msg === "string") return { text: msg, isError: level === "error" };
  } catch {
    // not one of the node's own lines
  }
  return { text: line.trim(), isError: false };
}
