import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { readCommand } from "../src/command-line.js";
import { closingLine, readCommand as readExplore } from "../src/explore/command-line.js";
import { InOrder, runFleet } from "../src/fleet.js";
import { marks } from "../src/marks.js";
import { Report } from "../src/report.js";
import { drawPlan } from "../src/run/plan.js";
import type { Plan } from "../src/run/plan.js";
import { parsePlan } from "../src/run/plan-checks.js";
import { shrunkLines } from "../src/shrink.js";

const main = fileURLToPath(new URL("../src/main.js", import.meta.url));
const exploreMain = fileURLToPath(new URL("../src/explore/main.js", import.meta.url));
/** Generous: machines are slow at times. */
const msMax = 120_000;

function words(text: string): string[] {
  return text.split(" ").filter((word) => word !== "");
}

type Read = typeof readCommand | typeof readExplore;

function assertRefused(read: Read, rows: Readonly<Record<string, string>>): void {
  for (const [line, problem] of Object.entries(rows)) {
    const result = read(words(line), 2);
    assert.ok("problems" in result, line);
    assert.deepEqual(result.problems, [problem], line);
  }
}

describe("the words of simulate", () => {
  it("say what is to be run", () => {
    assert.deepEqual(readCommand([], 2), {
      command: {
        kind: "many",
        first: 1,
        seeds: 100,
        workers: 2,
        isStopped: false,
        hasHashes: false,
        hasTable: false,
        needsMarks: false,
      },
    });
    assert.deepEqual(readCommand(words("--seed 7 --trace --lines 9 --shrink --out a.json"), 2), {
      command: { kind: "one", source: { seed: 7 }, isTraced: true, linesMax: 9, isShrunk: true, out: "a.json" },
    });
    assert.deepEqual(readCommand(words("--plan=a.json"), 2), {
      command: {
        kind: "one",
        source: { file: "a.json" },
        isTraced: false,
        linesMax: 200,
        isShrunk: false,
        out: null,
      },
    });
    assert.deepEqual(readCommand(words("--nonsense --help"), 2), { command: { kind: "help" } });
  });

  it("are refused when they are wrong, or would have no effect", () => {
    assertRefused(readCommand, {
      "--nonsense": "unknown option --nonsense",
      "-x": "unknown option -x",
      "--toString": "unknown option --toString",
      stray: "stray word stray",
      "--seed": "--seed needs a value",
      "--seeds --table": "--seeds needs a value",
      "--table=yes": "--table takes no value",
      "--seed 1 --seed 2": "--seed is given twice",
      "--seed 0": "--seed 0 is no whole number from 1 on",
      "--seeds 1e3": "--seeds 1e3 is no whole number from 1 on",
      "--workers 1.5": "--workers 1.5 is no whole number from 1 on",
      "--first 9007199254740991": "--seeds 100: there are no such seeds",
      "--seed 1 --plan a": "--seed and --plan exclude each other",
      "--seed 1 --seeds 2": "--seeds is of many seeds, not of --seed",
      "--plan a --first 2": "--first is of many seeds, not of --plan",
      "--seed 1 --marks": "--marks is of many seeds, not of --seed",
      "--trace": "--trace needs --seed or --plan",
      "--shrink": "--shrink needs --seed or --plan",
      "--lines 3": "--lines needs --seed or --plan",
      "--seed 1 --lines 3": "--lines needs --trace",
      "--plan a --out b": "--out needs --shrink",
    });
    assert.deepEqual(readCommand(words("--nonsense stray --seed x"), 2), {
      problems: ["unknown option --nonsense", "stray word stray", "--seed x is no whole number from 1 on"],
    });
  });
});

describe("the words of explore", () => {
  it("say what is to be explored", () => {
    const result = readExplore(words("raft led log --minutes 0.5 --states 9 --breadth"));
    assert.deepEqual(result, {
      command: {
        kind: "exploration",
        scopes: { raft: ["led", "log"], lease: [] },
        statesMax: 9,
        msMax: 30_000,
        isBreadth: true,
      },
    });
    const all = readExplore([]);
    assert.ok("command" in all && all.command.kind === "exploration");
    assert.ok(all.command.scopes.raft.includes("full") && all.command.scopes.lease.includes("safety"));
  });

  it("are refused when they are wrong", () => {
    assertRefused(readExplore, {
      "--nonsense": "unknown option --nonsense",
      "--minutes abc": "--minutes abc is no number above 0",
      "--minutes 0": "--minutes 0 is no number above 0",
      "--states abc": "--states abc is no whole number from 1 on",
      "--states 0": "--states 0 is no whole number from 1 on",
      locks: "locks is nothing to explore; say raft or lease",
      "lease --breadth": "--breadth is of raft only",
      "lease live none": `no scope of lease is named none; there are ${scopesOfLease()}`,
    });
  });

  it("scopes that were cut are named in the end", () => {
    const sound = { name: "raft led", isSound: true, isComplete: true };
    const cut = { name: "raft full", isSound: true, isComplete: false };
    const broken = { name: "raft log", isSound: false, isComplete: false };
    assert.equal(closingLine([sound]), "no rule is broken; nothing was cut");
    assert.equal(closingLine([sound, cut]), "no rule is broken in what was searched; cut: raft full");
    assert.equal(closingLine([sound, cut, broken]), "rules are broken or in doubt in: raft log");
  });
});

function scopesOfLease(): string {
  const all = readExplore(["lease"]);
  assert.ok("command" in all && all.command.kind === "exploration");
  return all.command.scopes.lease.join(", ");
}

describe("what is said of runs", () => {
  it("marks are counted; only the table lists them", () => {
    const report = new Report();
    const [met = ""] = marks;
    const times = { leaderMs: null, callsMs: null, sessionsMs: null };
    const counts = [[met, 2]] as const;
    report.add({ seed: 1, hash: "", problems: [], virtualMs: 1, events: 1, counts, times, electionTimeoutMs: 500 }, 1);
    assert.equal(report.lines().at(-1), `1 of ${marks.length} marks met`);
    assert.deepEqual(report.missingMarks(), marks.slice(1));
    assert.equal(report.table().length, marks.length);
    assert.equal(report.progress(5_000), "1 of 5,000 seeds are done, 0 failed so far");
  });

  it("the smallest plan is printed, or its file named, with how to run it", () => {
    const plan = drawPlan(3);
    const printed = shrunkLines({ plan, tries: 4 }, null);
    assert.deepEqual(parsePlan(printed[1] ?? ""), { plan });
    assert.match(printed.at(-1) ?? "", /--plan smallest\.json --trace$/);
    assert.deepEqual(shrunkLines({ plan, tries: 4 }, "a.json"), [
      "after 4 runs the smallest plan that fails is in a.json; to run it:",
      "  npm run simulate -- --plan a.json --trace",
    ]);
  });

  it("runs are told in the order of their seeds", () => {
    const inOrder = new InOrder<string>(7);
    assert.deepEqual(inOrder.take(8, "b"), []);
    assert.deepEqual(inOrder.take(10, "d"), []);
    assert.deepEqual(inOrder.take(7, "a"), ["a", "b"]);
    assert.deepEqual(inOrder.take(9, "c"), ["c", "d"]);
  });
});

describe("the commands", () => {
  it("refuse what is wrong with 64, and without a stack", () => {
    const folder = mkdtempSync(path.join(os.tmpdir(), "holdfast test-"));
    try {
      const broken = path.join(folder, "broken.json");
      const wrong = path.join(folder, "wrong.json");
      writeFileSync(broken, "{");
      writeFileSync(wrong, JSON.stringify({ ...drawPlan(1), nodes: 2, more: 1 }));
      const rows: readonly (readonly [string, readonly string[], RegExp])[] = [
        [main, ["--nonsense"], /^simulate: unknown option --nonsense\nusage: /],
        [main, ["--plan", `${broken}x`], /broken\.jsonx: can't be read: there is no such file/],
        [main, ["--plan", folder], /can't be read: it is a folder/],
        [main, ["--plan", broken], /broken\.json: is not JSON/],
        [main, ["--plan", wrong], /wrong\.json: nodes: 2 is not .*\n.*wrong\.json: more: is no field/],
        [exploreMain, ["raft", "led", "nonsense"], /^explore: no scope of raft is named nonsense/],
      ];
      for (const [file, args, said] of rows) {
        const { status, stdout, stderr } = spawnSync(process.execPath, [file, ...args], { encoding: "utf8" });
        assert.match(stderr, said);
        assert.doesNotMatch(stderr, /^ {4}at /m);
        assert.equal(stdout, "");
        assert.equal(status, 64);
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it("show the end of a run that passes, and don't shrink it", () => {
    const folder = mkdtempSync(path.join(os.tmpdir(), "holdfast test-"));
    try {
      const [file, out] = ["plan.json", "smallest.json"].map((name) => path.join(folder, name)) as [string, string];
      writeFileSync(file, JSON.stringify(small()));
      const args = [main, "--plan", file, "--trace", "--lines", "3", "--shrink", "--out", out];
      const { status, stdout } = spawnSync(process.execPath, args, { encoding: "utf8" });
      const lines = stdout.trim().split("\n");
      assert.equal(lines.length, 6, stdout);
      assert.match(lines[3] ?? "", /^lines \d+ to (\d+) of \1; --lines N for more$/);
      assert.match(lines[5] ?? "", /^nothing to shrink/);
      assert.equal(existsSync(out), false);
      assert.equal(status, 0);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

/** A plan that passes, and is over soon. */
function small(): Plan {
  return {
    ...drawPlan(1),
    nodes: 1,
    faults: [],
    clients: 1,
    rawClients: 0,
    actionsMax: 1,
    faultyMs: 500,
    healsAll: true,
  };
}

describe("processes that share seeds", () => {
  it("end at the first seed that is told to be the last", async () => {
    const told: number[] = [];
    await runFleet({ first: 1, seeds: 50, workers: 2, onRun: ({ seed }) => told.push(seed) < 2 });
    assert.deepEqual(told, [1, 2]);
    assert.deepEqual(childrenOf(process.pid), []);
  });

  it("one that ends by itself is no run that passes", async () => {
    const run = runFleet({ first: 1, seeds: 50, workers: 2, onRun: () => true });
    const ended = assert.rejects(run, /the process that ran seed [12] was ended by SIGKILL/);
    const [victim = 0] = await childrenWhen(process.pid, 2);
    process.kill(victim, "SIGKILL");
    await ended;
  });

  it("end at once with their parent", async () => {
    const parent = spawn(process.execPath, [main, "--seeds", "1000", "--workers", "2"], { stdio: "ignore" });
    const workers = await childrenWhen(parent.pid ?? 0, 2);
    try {
      // So they can't find out by themselves.
      for (const worker of workers) process.kill(worker, "SIGSTOP");
      assert.equal(await endOf(parent, "SIGTERM"), "SIGTERM");
      await until(() => workers.every((worker) => !isAlive(worker)), "the workers are gone");
    } finally {
      for (const worker of workers.filter(isAlive)) process.kill(worker, "SIGKILL");
      parent.kill("SIGKILL");
    }
  });
});

/** What ended it. */
async function endOf(child: ChildProcess, signal: NodeJS.Signals): Promise<unknown> {
  const end = once(child, "exit");
  child.kill(signal);
  return ((await end) as unknown[])[1];
}

async function childrenWhen(parent: number, count: number): Promise<readonly number[]> {
  await until(() => childrenOf(parent).length >= count, `${count} processes have started`);
  return childrenOf(parent);
}

function childrenOf(parent: number): number[] {
  const { stdout } = spawnSync("ps", ["-A", "-o", "pid=,ppid=,args="], { encoding: "utf8" });
  const rows = stdout.split("\n").map((line) => line.trim().split(/\s+/));
  return rows
    .filter(([, ppid, ...args]) => Number(ppid) === parent && args.includes("worker"))
    .map(([pid]) => Number(pid));
}

function isAlive(pid: number): boolean {
  // One that nobody has waited for yet is a zombie: it is gone.
  const { stdout } = spawnSync("ps", ["-o", "stat=", "-p", String(pid)], { encoding: "utf8" });
  return stdout.trim() !== "" && !stdout.startsWith("Z");
}

async function until(isSo: () => boolean, what: string): Promise<void> {
  for (const startMs = performance.now(); !isSo(); await sleep(50))
    assert.ok(performance.now() - startMs < msMax, `not within ${msMax} ms: ${what}`);
}
