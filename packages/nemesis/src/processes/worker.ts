/** A worker as the harness sees it: a process that is started anew after a kill, as another client of the history. */
import { createWriteStream } from "node:fs";
import type { WriteStream } from "node:fs";
import { fileURLToPath } from "node:url";
import type { MachineFault, MachineFaults } from "../machine/machine.js";
import type { Network, Party } from "../network/network.js";
import type { Command, Report, WorkerOrder } from "../worker/protocol.js";
import { Child } from "./child.js";
import type { ChildEnd } from "./child.js";

const program = fileURLToPath(new URL("../worker/main.js", import.meta.url));
/** Calls of one life; a life makes some thousands. */
const callsOfLifeMax = 1_000_000;

export type OrderForLife = Omit<WorkerOrder, "client" | "firstCall">;

export interface WorkerEvents {
  onReport(worker: WorkerProcess, client: string, report: Report): void;
  onExit(worker: WorkerProcess, client: string, end: ChildEnd): void;
}

export interface WorkerOptions {
  readonly name: Party;
  /** Unique in the run: numbers its calls. */
  readonly number: number;
  readonly order: OrderForLife;
  readonly logFile: string;
  readonly directory: string;
  /** Faults of the machine that this run ever puts under it. */
  readonly faults: readonly MachineFault[];
}

export class WorkerProcess {
  readonly name: Party;
  readonly directory: string;
  /** The lock that it holds, by its own word. */
  holding: string | null = null;
  isDrained = false;
  /** Of the life that runs. */
  client = "";
  private lives = 0;
  private child: Child | null = null;
  private readonly options: WorkerOptions;
  private readonly network: Network;
  private readonly machine: MachineFaults;
  private readonly events: WorkerEvents;
  private readonly log: WriteStream;

  constructor(options: WorkerOptions, parts: { network: Network; machine: MachineFaults; events: WorkerEvents }) {
    this.name = options.name;
    this.directory = options.directory;
    this.options = options;
    this.network = parts.network;
    this.machine = parts.machine;
    this.events = parts.events;
    this.log = createWriteStream(options.logFile, { flags: "a" });
  }

  get isRunning(): boolean {
    return this.child?.isRunning === true;
  }

  get pid(): number {
    return this.child?.pid ?? 0;
  }

  async start(): Promise<void> {
    const { name, number, order, directory, faults } = this.options;
    this.lives += 1;
    const client = this.lives === 1 ? name : `${name}.${this.lives}`;
    const firstCall = (number * 100 + this.lives) * callsOfLifeMax;
    const text = JSON.stringify({ ...order, client, firstCall } satisfies WorkerOrder);
    this.client = client;
    this.holding = null;
    this.isDrained = false;
    const launch = { command: [process.execPath, program, text], env: {}, directory };
    const launched = await this.machine.launch(name, launch, faults);
    this.child = new Child({
      command: this.network.wrap(name, launched.command),
      env: launched.env,
      onOut: (line) => this.onLine(client, line),
      onErr: (line) => this.log.write(`${line}\n`),
      onExit: (end) => this.events.onExit(this, client, end),
    });
  }

  command(command: Command): void {
    this.child?.send(JSON.stringify(command));
  }

  signal(name: NodeJS.Signals): void {
    this.child?.signal(name);
  }

  async kill(): Promise<void> {
    this.child?.kill();
    await this.child?.exited();
  }

  closeLog(): Promise<void> {
    return new Promise((resolve) => this.log.end(resolve));
  }

  private onLine(client: string, line: string): void {
    let report: Report;
    try {
      report = JSON.parse(line) as Report;
    } catch {
      // Killed in the middle of a line.
      return;
    }
    if (report.kind === "holding") this.holding = report.name;
    if (report.kind === "drained") this.isDrained = true;
    this.events.onReport(this, client, report);
  }
}
