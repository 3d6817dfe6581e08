/** The other end of writer.ts. */
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { until } from "../harness/until.js";

export interface WriterTask {
  readonly kind: string;
  readonly address: string;
  readonly resource: string;
  /**
   * `write`, `append` and `write-all` (several resources at once) go on with token after token until they are killed; `old-holder` adds
   * lines under token 10 until it is refused, `successor` some under token 11; `mixed` is one crowd of writers.
   */
  readonly work: "write" | "append" | "write-all" | "old-holder" | "successor" | "mixed";
  readonly from?: number;
  readonly to?: number;
}

export class WriterProcess {
  readonly #child: ChildProcess;
  readonly #lines: string[] = [];
  #isOver = false;

  constructor(task: WriterTask) {
    const script = fileURLToPath(new URL("./writer.js", import.meta.url));
    // stdout is a file-like pipe, which the kernel keeps: an acknowledgement that was said is read even after a kill.
    this.#child = spawn(process.execPath, [script, JSON.stringify(task)], { stdio: ["pipe", "pipe", "inherit"] });
    if (this.#child.stdout === null) throw new Error("no stdout");
    this.#child.stdin?.on("error", () => {});
    createInterface({ input: this.#child.stdout }).on("line", (line) => this.#lines.push(line));
    this.#child.once("close", () => {
      this.#isOver = true;
    });
  }

  async ready(): Promise<void> {
    await until("the writer is ready", () => {
      if (this.#isOver) throw new Error("the writer ended before it was ready");
      return this.#lines[0] === "ready";
    });
  }

  go(): void {
    this.#child.stdin?.write("go\n");
  }

  /** The highest number that was acknowledged: the token, or of lines under one token the line's. */
  acknowledged(): number {
    return this.#lines.reduce((highest, line) => (/^\d+$/.test(line) ? Math.max(highest, Number(line)) : highest), 0);
  }

  /** All that it said. */
  async ended(): Promise<readonly string[]> {
    await until("the writer has ended", () => this.#isOver, 120_000);
    return this.#lines;
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }
}
