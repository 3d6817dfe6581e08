/** A program of docs/examples as a process. */
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { until } from "../harness/until.js";

const running = new Set<ChildProcess>();
process.once("exit", killAll);

/** Those that are stopped too: they would keep this process waiting for ever. */
export function killAll(): void {
  for (const child of running) child.kill("SIGKILL");
}

export class ExampleProcess {
  output = "";
  readonly #child: ChildProcess;
  #end: number | string | null = null;

  constructor(file: string, words: readonly string[], environment: Readonly<Record<string, string>>) {
    const env = { ...process.env, ...environment };
    this.#child = spawn(process.execPath, [file, ...words], { stdio: ["ignore", "pipe", "pipe"], env });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.on("data", (chunk: Buffer) => (this.output += chunk.toString()));
    }
    running.add(this.#child);
    this.#child.once("close", (code, signal) => {
      running.delete(this.#child);
      this.#end = code ?? signal ?? "?";
    });
  }

  get isOver(): boolean {
    return this.#end !== null;
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  /** The exit code, or the signal's name. */
  async ended(): Promise<number | string> {
    return until("the program ends", () => (this.#end === null ? null : { end: this.#end }), 120_000).then(
      ({ end }) => end,
    );
  }
}
