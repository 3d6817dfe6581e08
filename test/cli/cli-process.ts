/** The holdfast command as a process. */
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { holdfastBin } from "../harness/cluster.js";
import { until } from "../harness/until.js";

export interface CliResult {
  /** The exit code, or the signal's name. */
  readonly code: number | string;
  readonly out: string;
  readonly err: string;
}

export class CliProcess {
  readonly child: ChildProcess;
  readonly ended: Promise<CliResult>;
  out = "";
  err = "";

  constructor(words: readonly string[], environment: Readonly<Record<string, string>>, cwd?: string) {
    const env = { ...process.env, ...environment };
    this.child = spawn(process.execPath, [holdfastBin, ...words], { stdio: ["ignore", "pipe", "pipe"], env, cwd });
    this.child.stdout?.on("data", (chunk: Buffer) => (this.out += chunk.toString()));
    this.child.stderr?.on("data", (chunk: Buffer) => (this.err += chunk.toString()));
    this.ended = new Promise((resolve) => {
      // "exit", not "close": a command that outlives a killed wrapper keeps the pipes open.
      this.child.once("exit", (code, signal) => resolve({ code: signal ?? code ?? "?", out: this.out, err: this.err }));
    });
  }

  get pid(): number {
    if (this.child.pid === undefined) throw new Error("not started");
    return this.child.pid;
  }
}

/** Runs to the end. */
export async function runCli(
  words: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<CliResult> {
  const result = await new CliProcess(words, environment).ended;
  await new Promise((resolve) => setImmediate(resolve));
  return result;
}

/** The number that a script has written to a file. */
export async function numberIn(file: string): Promise<number> {
  await until(`${file} holds a number`, () => existsSync(file) && /^\d+\n$/.test(readFileSync(file, "utf8")));
  return Number(readFileSync(file, "utf8"));
}

/** False for zombies too. */
export function isRunning(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) [ZX]/.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}
