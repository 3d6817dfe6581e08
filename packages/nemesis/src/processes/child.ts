/**
 * A child process with a group of its own, whose lines are read here. It dies with us, however we die: stopped ones too, for the kernel
 * sends the signal (setpriv --pdeathsig); where there is no such thing, by the end of its input.
 */
import { spawn, spawnSync } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";

export interface ChildOptions {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Whose process it is; null: ours. */
  readonly owner?: ProcessOwner | null;
  readonly onOut: (line: string) => void;
  readonly onErr: (line: string) => void;
  readonly onExit: (end: ChildEnd) => void;
}

export interface ProcessOwner {
  readonly uid: number;
  readonly gid: number;
}

/** A number is an exit code. */
export type ChildEnd = number | NodeJS.Signals;

export class Child {
  readonly pid: number;
  private readonly process: ChildProcess;
  private end: ChildEnd | null = null;
  private readonly ended: Promise<ChildEnd>;

  constructor(options: ChildOptions) {
    const [program = "", ...args] = [...deathWords(), ...options.command];
    const child = spawn(program, args, {
      stdio: ["pipe", "pipe", "pipe"],
      env: { ...process.env, ...options.env },
      detached: true,
      ...options.owner,
    });
    this.process = child;
    this.pid = child.pid ?? 0;
    child.stdin?.on("error", () => undefined);
    if (child.stdout !== null) createInterface({ input: child.stdout }).on("line", options.onOut);
    if (child.stderr !== null) createInterface({ input: child.stderr }).on("line", options.onErr);
    this.ended = new Promise((resolve) => {
      const onEnd = (end: ChildEnd): void => {
        if (this.end !== null) return;
        this.end = end;
        living.delete(this);
        options.onExit(end);
        resolve(end);
      };
      child.once("error", (error) => {
        options.onErr(error.message);
        onEnd(127);
      });
      child.once("exit", (code, signal) => onEnd(signal ?? code ?? 1));
    });
    living.add(this);
  }

  get isRunning(): boolean {
    return this.end === null;
  }

  send(line: string): void {
    this.process.stdin?.write(`${line}\n`);
  }

  /** To the whole group: what wraps the program must not stand between. */
  signal(name: NodeJS.Signals): void {
    if (this.end !== null || this.pid === 0) return;
    try {
      process.kill(-this.pid, name);
    } catch {
      // It has just ended.
    }
  }

  kill(): void {
    this.signal("SIGKILL");
  }

  exited(): Promise<ChildEnd> {
    return this.ended;
  }

  /** Null when it hasn't ended by then. */
  async exitedWithin(limitMs: number): Promise<ChildEnd | null> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<null>((resolve) => {
      timer = setTimeout(() => resolve(null), limitMs);
    });
    const end = await Promise.race([this.ended, late]);
    clearTimeout(timer);
    return end;
  }
}

const living = new Set<Child>();
process.once("exit", () => {
  for (const child of living) child.kill();
});

let knownWords: readonly string[] | null = null;

function deathWords(): readonly string[] {
  if (knownWords === null) {
    const words = ["setpriv", "--pdeathsig", "KILL", "--"];
    const { status } = spawnSync("setpriv", [...words.slice(1), "true"], { stdio: "ignore" });
    knownWords = status === 0 ? words : [];
  }
  return knownWords;
}
