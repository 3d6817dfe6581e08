/** Run by stays-behind.test.ts: puts all faults under processes, says where, and waits to be killed. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { MachineFault } from "../../src/machine/machine.js";
import { RealMachine } from "../../src/machine/real-machine.js";
import { startVictim } from "./victims.js";

const machine = await RealMachine.open();
const folder = mkdtempSync(join(tmpdir(), "holdfast-machine-test-"));
const pids: number[] = [];
const wanted: readonly MachineFault[] = [
  { kind: "diskFull" },
  { kind: "frozen" },
  { kind: "wallJump", ms: 1 },
  { kind: "clockRate", rate: 1.1 },
];
for (const fault of wanted) {
  if ((await machine.missing(fault.kind)) !== null) continue;
  const victim = await startVictim(machine, fault.kind, mkdtempSync(join(folder, "data-")), [fault]);
  await machine.begin(victim.target, fault);
  pids.push(victim.target.pid);
}
process.stdout.write(`${JSON.stringify({ folder, pids })}\n`);
setInterval(() => {}, 1_000);
