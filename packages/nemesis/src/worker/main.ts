/** A worker: `node main.js ORDER`, commands as JSON lines on its input, at whose end it ends. */
import { createInterface } from "node:readline";
import { Application } from "./application.js";
import { Gate } from "./gate.js";
import type { Command, WorkerOrder } from "./protocol.js";
import { Registers } from "./registers.js";
import { Reporter } from "./reporter.js";
import { probe, work } from "./work.js";

const order = JSON.parse(process.argv[2] ?? "{}") as WorkerOrder;
const reporter = new Reporter();
const gate = new Gate(reporter);
let application: Application | null = null;
let isDraining = false;

createInterface({ input: process.stdin })
  .on("line", (line) => onCommand(JSON.parse(line) as Command))
  .on("close", () => process.exit(0));

try {
  await run();
} catch (error) {
  reporter.tell({ kind: "broken", problem: error instanceof Error ? (error.stack ?? error.message) : String(error) });
  process.exitCode = 1;
}

function onCommand(command: Command): void {
  switch (command.kind) {
    case "gate":
      gate.arm(command.action);
      return;
    case "drain":
      isDraining = true;
      application?.abandonWaiting();
      return;
    default:
      command satisfies never;
  }
}

async function run(): Promise<void> {
  const opened = await Application.open(order, reporter);
  application = opened;
  const registers = order.storeUrl === null ? null : new Registers(order.client, order.storeUrl, reporter);
  const loop = order.role === "prober" ? probe : work;
  await loop({ order, application: opened, registers, gate, reporter, isDraining: () => isDraining });
  await opened.close();
  await registers?.close();
  reporter.tell({ kind: "drained" });
}
