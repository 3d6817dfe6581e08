/** Runs many seeds in several processes. Which one runs a seed makes no difference to it. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { runSeed } from "./run/run-seed.js";
import type { Summary } from "./run/run-seed.js";

export interface FleetOptions {
  readonly first: number;
  readonly seeds: number;
  readonly workers: number;
  /** Whether to go on, after each run. */
  readonly onRun: (summary: Summary, cpuMs: number) => boolean;
}

interface Share {
  readonly first: number;
  readonly end: number;
  readonly step: number;
}

interface Told {
  readonly summary: Summary;
  /** CPU time that the run took, in milliseconds. */
  readonly cpuMs: number;
}

/** Resolves when all seeds have run, or when it was told to stop. */
export async function runFleet(options: FleetOptions): Promise<void> {
  const { first, seeds, workers, onRun } = options;
  const shares = Array.from(
    { length: workers },
    (_, at): Share => ({ first: first + at, end: first + seeds, step: workers }),
  );
  if (workers === 1) {
    await runShare(shares[0] as Share, ({ summary, cpuMs }) => onRun(summary, cpuMs));
    return;
  }
  await Promise.all(shares.map((share) => runInChild(share, onRun)));
}

async function runShare({ first, end, step }: Share, tell: (told: Told) => boolean): Promise<void> {
  for (let seed = first; seed < end; seed += step) {
    const before = process.cpuUsage();
    const summary = await runSeed(seed);
    const { user, system } = process.cpuUsage(before);
    if (!tell({ summary, cpuMs: (user + system) / 1_000 })) return;
  }
}

async function runInChild({ first, end, step }: Share, onRun: FleetOptions["onRun"]): Promise<void> {
  const child = fork(fileURLToPath(import.meta.url), ["share", String(first), String(end), String(step)]);
  child.on("message", ({ summary, cpuMs }: Told) => {
    if (!onRun(summary, cpuMs)) child.kill();
  });
  const [code, signal] = (await once(child, "exit")) as [number | null, string | null];
  if (code !== 0 && signal === null) throw new Error(`the process that ran seeds from ${first} on ended with ${code}`);
}

const [word, ...numbers] = process.argv.slice(2);
if (word === "share" && process.send !== undefined) {
  const [first = 1, end = 1, step = 1] = numbers.map(Number);
  const send = process.send.bind(process);
  await runShare({ first, end, step }, (told) => {
    send(told);
    return true;
  });
  process.disconnect();
}
