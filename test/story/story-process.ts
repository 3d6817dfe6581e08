/** The narrator's end of story-worker.ts. */
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { until } from "../harness/until.js";
import type { StoryEvent, StoryTask } from "./story-worker.js";

export class StoryWorker {
  private readonly child: ChildProcess;
  private readonly events: StoryEvent[] = [];

  constructor(task: StoryTask) {
    const script = fileURLToPath(new URL("./story-worker.js", import.meta.url));
    this.child = spawn(process.execPath, [script, JSON.stringify(task)], { stdio: ["pipe", "pipe", "inherit"] });
    this.child.stdin?.on("error", () => {});
    if (this.child.stdout === null) throw new Error("no stdout");
    createInterface({ input: this.child.stdout }).on("line", (line) =>
      this.events.push(JSON.parse(line) as StoryEvent),
    );
    process.once("exit", this.kill);
  }

  find(event: StoryEvent["event"]): StoryEvent | undefined {
    return this.events.find((one) => one.event === event);
  }

  async event(event: StoryEvent["event"]): Promise<StoryEvent> {
    return until(`a worker says ${event}`, () => this.find(event), 120_000, 5);
  }

  say(line: string): void {
    this.child.stdin?.write(`${line}\n`);
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
