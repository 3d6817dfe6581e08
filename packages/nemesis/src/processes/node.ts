/** One node of the cluster as a process: started any number of times on one data directory. */
import { createWriteStream } from "node:fs";
import type { WriteStream } from "node:fs";
import { fileURLToPath } from "node:url";
import type { MachineFault, MachineFaults } from "../machine/machine.js";
import type { Network, Party } from "../network/network.js";
import { Child } from "./child.js";
import type { ChildEnd } from "./child.js";

const program = fileURLToPath(new URL("../../../../cli/bin/holdfast.js", import.meta.url));
/** As `holdfast dev` starts its nodes: they end when their input closes. */
const endsWithParent = { HOLDFAST_PARENT_PIPE: "1" };

export interface NodeOptions {
  readonly id: Party;
  readonly configFile: string;
  readonly directory: string;
  readonly logFile: string;
}

export interface NodeEvents {
  onStart(id: Party): void;
  /** A line of its log. */
  onLine(id: Party, line: string): void;
  onExit(id: Party, end: ChildEnd): void;
}

export class NodeProcess {
  readonly id: Party;
  /** Where its data is; a fault of the disk may have put it elsewhere than `options` said. */
  directory: string;
  private readonly options: NodeOptions;
  private readonly network: Network;
  private readonly machine: MachineFaults;
  private readonly events: NodeEvents;
  private readonly log: WriteStream;
  private child: Child | null = null;

  constructor(options: NodeOptions, parts: { network: Network; machine: MachineFaults; events: NodeEvents }) {
    this.id = options.id;
    this.options = options;
    this.directory = options.directory;
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

  /** `faults`: all that this run ever does to it. */
  async start(faults: readonly MachineFault[]): Promise<void> {
    if (this.isRunning) return;
    const { id, configFile, directory } = this.options;
    const launched = await this.machine.launch(
      id,
      {
        command: [process.execPath, program, "node", "--config", configFile, "--id", id, "--data", directory],
        env: endsWithParent,
        directory,
      },
      faults,
    );
    this.directory = launched.directory;
    const tell = (line: string): void => {
      this.log.write(`${line}\n`);
      this.events.onLine(id, line);
    };
    this.events.onStart(id);
    this.child = new Child({
      command: this.network.wrap(id, launched.command),
      env: launched.env,
      onOut: tell,
      onErr: tell,
      onExit: (end) => this.events.onExit(id, end),
    });
  }

  signal(name: NodeJS.Signals): void {
    this.child?.signal(name);
  }

  async kill(): Promise<void> {
    this.child?.kill();
    await this.child?.exited();
  }

  /** In order, by force after the limit. */
  async stop(limitMs: number): Promise<ChildEnd | null> {
    if (this.child === null || !this.child.isRunning) return null;
    this.child.signal("SIGTERM");
    const end = await this.child.exitedWithin(limitMs);
    if (end === null) await this.kill();
    return end;
  }

  async exitedWithin(limitMs: number): Promise<ChildEnd | null> {
    return this.child === null ? null : this.child.exitedWithin(limitMs);
  }

  closeLog(): Promise<void> {
    return new Promise((resolve) => this.log.end(resolve));
  }
}
