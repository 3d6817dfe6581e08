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
const tailBytes = 65_536;
/** Of what a node says on stderr when it ends. */
const sentenceStart = "holdfast: ";

export class NodeProcess {
  readonly id: string;
  readonly logFile: string;
  readonly ended: Promise<NodeEnd>;
  readonly #child: ChildProcess;
  /** Where in the log this run begins. */
  readonly #logStart: number;
  #isRunning = true;

  constructor(options: NodeProcessOptions) {
    this.id = options.id;
    mkdirSync(options.folder, { recursive: true });
    this.logFile = path.join(options.folder, "node.log");
    turnOver(this.logFile);
    const log = openSync(this.logFile, "a");
    this.#logStart = fstatSync(log).size;
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

  /** What this run said last, for a person to read: its sentence on stderr, else its last error, else nothing that is known. */
  lastWords(): string | null {
    const lines = readTail(this.logFile, this.#logStart).split("\n");
    const sentence = lines.findLast((line) => line.startsWith(sentenceStart));
    if (sentence !== undefined) return sentence.slice(sentenceStart.length).replace(`${this.id}: `, "");
    const texts = lines.flatMap((line) => textOf(line) ?? []);
    return (texts.findLast(({ isError }) => isError) ?? texts.at(-1))?.text ?? null;
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

/** Whole lines from the end of the file, none from before `start`. */
function readTail(file: string, start: number): string {
  const descriptor = openSync(file, "r");
  try {
    const { size } = fstatSync(descriptor);
    const from = Math.max(start, size - tailBytes);
    const buffer = Buffer.alloc(Math.max(0, size - from));
    const length = readSync(descriptor, buffer, 0, buffer.length, from);
    const text = buffer.toString("utf8", 0, length);
    return from === start ? text : text.slice(text.indexOf("\n") + 1);
  } finally {
    closeSync(descriptor);
  }
}

/** Null for what isn't for people: an empty line, a line of a stack, JSON without a word in it. */
function textOf(line: string): { text: string; isError: boolean } | null {
  if (line.trim() === "" || /^\s/.test(line)) return null;
  if (!line.startsWith("{")) return { text: line.trim(), isError: false };
  try {
    const { msg, reason, level } = JSON.parse(line) as { msg?: unknown; reason?: unknown; level?: unknown };
    const words = [msg, reason].filter((word) => typeof word === "string" && word !== "");
    return words.length === 0 ? null : { text: words.join(": "), isError: level === "error" || level === "fatal" };
  } catch {
    return null;
  }
}
