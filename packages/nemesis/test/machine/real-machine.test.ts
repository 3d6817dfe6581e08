import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { MachineFault, MachineFaultKind } from "../../src/machine/machine.js";
import { trueMs } from "../../src/machine/clocks.js";
import { RealMachine } from "../../src/machine/real-machine.js";
import { until } from "../until.js";
import { startVictim } from "./victims.js";
import type { Victim } from "./victims.js";

const probe = await RealMachine.open();
const kinds: readonly MachineFaultKind[] = ["diskFull", "slowSync", "failSync", "frozen", "wallJump", "clockRate"];
const missing = new Map<MachineFaultKind, string | null>();
for (const kind of kinds) missing.set(kind, await probe.missing(kind));
await probe.close();
const needs = (kind: MachineFaultKind): { skip: string | false } => ({ skip: missing.get(kind) ?? false });

describe("faults of the machine", { timeout: 240_000 }, () => {
  let folder: string;
  let machine: RealMachine;
  const victims: Victim[] = [];

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "holdfast-machine-test-"));
    machine = await RealMachine.open();
  });
  after(async () => {
    for (const victim of victims) await victim.kill();
    await machine.close();
    rmSync(folder, { recursive: true });
  });

  async function victimOf(party: string, ...faults: MachineFault[]): Promise<Victim> {
    const victim = await startVictim(machine, party, join(folder, party), faults);
    victims.push(victim);
    return victim;
  }

  it("a full disk refuses writes until it is freed, and is counted", needs("diskFull"), async () => {
    const before = join(folder, "full", "before");
    mkdirSync(join(folder, "full"));
    writeFileSync(before, "already there");
    const victim = await victimOf("full", { kind: "diskFull" });
    const file = join(victim.target.directory, "file");
    assert.equal(readFileSync(join(victim.target.directory, "before"), "utf8"), "already there");
    assert.equal((await victim.look(file)).code, null);
    await machine.begin(victim.target, { kind: "diskFull" });
    // A file of its own: some file systems keep room at the end of one that is there.
    assert.equal((await victim.look(join(victim.target.directory, "other"))).code, "ENOSPC");
    assert.equal((await victim.look(join(folder, "elsewhere"))).code, null);
    const bites = await machine.bites("full", "diskFull");
    assert.ok(bites === null || bites > 0, `${bites} writes refused`);
    await machine.end(victim.target, "diskFull");
    assert.equal((await victim.look(file)).code, null);
    // Another life of the same party finds its files.
    await victim.kill();
    const next = await victimOf("full", { kind: "diskFull" });
    assert.deepEqual(readdirSync(next.target.directory).sort(), ["before", "file", "other"]);
  });

  it("a slow disk lets syncs wait, those of its own directory alone", needs("slowSync"), async () => {
    const victim = await victimOf("slow", { kind: "slowSync", ms: 700 });
    const file = join(victim.target.directory, "file");
    await machine.begin(victim.target, { kind: "slowSync", ms: 700 });
    assert.ok((await victim.look(file)).tookMs >= 900);
    assert.equal(await machine.bites("slow", "slowSync"), 1);
    await victim.look(join(folder, "elsewhere"));
    assert.equal(await machine.bites("slow", "slowSync"), 1);
    await machine.end(victim.target, "slowSync");
    await victim.look(file);
    assert.equal(await machine.bites("slow", "slowSync"), 1);
  });

  it("a sync that is slow goes on when the fault ends", needs("slowSync"), async () => {
    const victim = await victimOf("freed", { kind: "slowSync", ms: 60_000 });
    await machine.begin(victim.target, { kind: "slowSync", ms: 60_000 });
    const looking = victim.look(join(victim.target.directory, "file"));
    await until("it waits", async () => (await machine.bites("freed", "slowSync")) === 1);
    await machine.end(victim.target, "slowSync");
    assert.equal((await looking).code, null);
  });

  it("a broken disk fails syncs", needs("failSync"), async () => {
    const victim = await victimOf("broken", { kind: "failSync" });
    const file = join(victim.target.directory, "file");
    await machine.begin(victim.target, { kind: "failSync" });
    assert.equal((await victim.look(file)).code, "EIO");
    assert.equal(await machine.bites("broken", "failSync"), 1);
    await machine.end(victim.target, "failSync");
    assert.equal((await victim.look(file)).code, null);
  });

  it("a frozen process stands still, and can be killed", needs("frozen"), async () => {
    const victim = await victimOf("frozen", { kind: "frozen" });
    const path = join(folder, "frozen-file");
    await victim.look(path);
    await machine.begin(victim.target, { kind: "frozen" });
    assert.equal(await machine.bites("frozen", "frozen"), 1);
    const used = cpuTicks(victim.target.pid);
    const looking = victim.look(path);
    let isBack = false;
    void looking.then(() => {
      isBack = true;
    });
    // A process that isn't frozen answers in its 200 ms; this one gets a chance to.
    const other = await victimOf("other");
    for (let turn = 0; turn < 3; turn += 1) await other.look(join(folder, "other-file"));
    assert.equal(isBack, false);
    assert.equal(cpuTicks(victim.target.pid), used);
    await machine.end(victim.target, "frozen");
    assert.equal((await looking).code, null);
    await machine.begin(victim.target, { kind: "frozen" });
    await victim.kill();
  });

  it("a wall clock jumps there and back, and no other clock with it", needs("wallJump"), async () => {
    const victim = await victimOf("jumping", { kind: "wallJump", ms: 0 });
    const path = join(folder, "jumping-file");
    for (const ms of [3_600_000, -3_600_000]) {
      await machine.begin(victim.target, { kind: "wallJump", ms });
      const { wallMs, tookMs, uptimeMs } = await victim.look(path);
      assert.ok(Math.abs(wallMs - Date.now() - ms) < 60_000, `${wallMs - Date.now()} ms off`);
      assert.ok(tookMs < 60_000 && uptimeMs < 60_000);
      await machine.end(victim.target, "wallJump");
      assert.ok(Math.abs((await victim.look(path)).wallMs - Date.now()) < 60_000);
    }
  });

  it("clocks run at another rate, timers and uptime with them", needs("clockRate"), async () => {
    const victim = await victimOf("hasty", { kind: "clockRate", rate: 10 });
    const path = join(folder, "hasty-file");
    await victim.look(path);
    const startMs = performance.now();
    let byItsClock = 0;
    let byItsUptime = 0;
    let hasFineUptime = false;
    for (let turn = 0; turn < 10; turn += 1) {
      const before = trueMs();
      const { tookMs, uptimeMs, trueMs: told } = await victim.look(path);
      assert.ok(told > before && told < trueMs(), `it knows the true time: ${told}, after ${before}`);
      byItsClock += tookMs;
      byItsUptime += uptimeMs;
      hasFineUptime ||= Math.round(uptimeMs) % 1_000 !== 0;
    }
    const tookMs = performance.now() - startMs;
    assert.ok(byItsClock >= 2_000, `${byItsClock} ms by its own clock`);
    assert.ok(hasFineUptime && Math.abs(byItsUptime - byItsClock) < byItsClock / 2, `${byItsUptime} ms by its uptime`);
    assert.ok(tookMs < byItsClock / 2, `${tookMs} ms in truth, ${byItsClock} by its clock`);
  });

  it("refuses numbers that make no sense, and faults that exclude one another", async () => {
    const launch = { command: ["true"], env: {}, directory: folder };
    const refused: [MachineFault[], RegExp][] = [
      [[{ kind: "slowSync", ms: -1 }], /slowSync\.ms is -1/],
      [[{ kind: "wallJump", ms: Number.NaN }], /wallJump\.ms is NaN/],
      [[{ kind: "clockRate", rate: 0 }], /clockRate\.rate is 0/],
      [
        [
          { kind: "clockRate", rate: 0.9 },
          { kind: "clockRate", rate: 1.1 },
        ],
        /0\.9 and 1\.1/,
      ],
      [
        [
          { kind: "clockRate", rate: 0.9 },
          { kind: "wallJump", ms: 1 },
        ],
        /exclude/,
      ],
    ];
    for (const [faults, message] of refused) {
      await assert.rejects(machine.launch("odd", launch, faults), {
        name: "MachineError",
        code: "bad_argument",
        message,
      });
    }
    const target = { party: "odd", pid: process.pid, directory: folder };
    for (const kind of ["slowSync", "failSync", "wallJump"] as const) {
      await assert.rejects(machine.begin(target, { kind, ms: 1 }), { code: "bad_argument", message: /odd/ });
    }
  });
});

/** User and system time that a process has used so far. */
function cpuTicks(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return Number(fields[11]) + Number(fields[12]);
}
