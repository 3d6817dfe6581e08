/** The other end of worker.ts. */
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { until } from "./until.js";

export interface WorkerEvent {
  readonly event: "connected" | "granted" | "lost" | "failed";
  readonly atMs: number;
  readonly pid: number;
  readonly token?: number;
  readonly remainingMs?: number;
  readonly reason?: string;
  readonly code?: string;
}

export interface WorkerTask {
  readonly endpoints: readonly string[];
  readonly name: string;
  readonly ttlMs: number;
  readonly waitMs?: number;
}

export class WorkerProcess {
  readonly events: WorkerEvent[] = [];
  private readonly child: ChildProcess;

  constructor(task: WorkerTask) {
    const script = fileURLToPath(new URL("./worker.js", import.meta.url));
    this.child = spawn(process.execPath, [script, JSON.stringify(task)], { stdio: ["pipe", "pipe", "inherit"] });
    if (this.child.stdout === null) throw new Error("no stdout");
    createInterface({ input: this.child.stdout }).on("line", (line) =>
      this.events.push(JSON.parse(line) as WorkerEvent),
    );
    process.once("exit", this.kill);
  }

  find(event: WorkerEvent["event"]): WorkerEvent | undefined {
    return this.events.find((one) => one.event === event);
  }

  async event(event: WorkerEvent["event"], limitMs = 60_000): Promise<WorkerEvent> {
    return until(`worker says ${event}`, () => this.find(event), limitMs, 5);
  }

  signal(name: NodeJS.Signals): void {
    this.child.kill(name);
  }

  readonly kill = (): void => {
    process.removeListener("exit", this.kill);
    this.child.kill("SIGCONT");
    this.child.kill("SIGKILL");
  };
}
