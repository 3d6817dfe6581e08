/** The command line: npm run partition -- --help. */
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readCommand, usage } from "./command-line.js";
import type { Choice, Mode, RunCommand } from "./command-line.js";
import { resultsFile, runFleet } from "./fleet.js";
import { entrance, startAnew } from "./network/netns/enter.js";
import { resultsText } from "./report/results.js";
import type { RunResult } from "./report/results.js";
import { ciSelection, readScenarioFile, scenarioNamed, scenarioNames } from "./scenario/library.js";
import { ScenarioError } from "./scenario/parse.js";
import { drawScenario } from "./scenario/random.js";
import { resized, stretched } from "./scenario/resize.js";
import type { Scenario } from "./scenario/scenario.js";
import { missingDriver } from "./store/driver.js";
import { missingPostgres } from "./store/postgres.js";

/** EX_USAGE of sysexits.h. */
const usageExitCode = 64;
/** EX_UNAVAILABLE. */
const unavailableExitCode = 69;
/** Set for this program when it has started itself anew in a network namespace. */
const insideVariable = "HOLDFAST_PARTITION_INSIDE";

const read = readCommand(process.argv.slice(2));
if ("problems" in read) {
  for (const problem of read.problems) console.error(`partition: ${problem}`);
  console.error(usage);
  process.exitCode = usageExitCode;
} else if (read.command.kind === "help") console.log(usage);
else if (read.command.kind === "list") {
  for (const name of scenarioNames()) console.log(`${name}: ${scenarioNamed(name).about}`);
} else if (read.command.kind === "table") process.exitCode = printTable(read.command.folders);
else process.exitCode = await run(read.command);

function printTable(folders: readonly string[]): number {
  try {
    const lines = folders.flatMap((folder) => readFileSync(join(folder, resultsFile), "utf8").trimEnd().split("\n"));
    console.log(resultsText(lines.map((line) => JSON.parse(line) as RunResult)));
    return 0;
  } catch (error) {
    console.error(`partition: --table: ${error instanceof Error ? error.message : String(error)}`);
    return usageExitCode;
  }
}

async function run(command: RunCommand): Promise<number> {
  const seed = seedOf(command.choice);
  let scenarios: Iterable<Scenario>;
  try {
    scenarios = chosen(command, seed);
  } catch (error) {
    if (!(error instanceof ScenarioError)) throw error;
    console.error(error.message);
    return usageExitCode;
  }
  const missing = missingDriver() ?? missingPostgres();
  if (missing !== null) {
    console.error(`partition: ${missing}`);
    return unavailableExitCode;
  }
  const isInside = process.env[insideVariable] === "1";
  if (!isInside && command.mode !== "proxy") {
    const code = await goInside(command.mode);
    if (code !== null) return code;
  }
  endInOrder();
  const out = command.out ?? mkdtempSync(join(tmpdir(), "holdfast-partition-"));
  const facilities = { isInside, isStrict: command.mode !== "auto" };
  const { passed, failed, skipped } = await runFleet(scenarios, { out, facilities, seed });
  console.log(`${passed.length} passed, ${failed.length} failed, ${skipped.length} skipped: ${out}`);
  if (failed.length > 0) console.log(`failed: ${failed.join(", ")}`);
  return failed.length > 0 ? 1 : 0;
}

/** Whoever interrupts a run leaves nothing behind: what exits in order kills its children and removes the store. */
function endInOrder(): void {
  for (const [signal, code] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGHUP", 129],
  ] as const) {
    process.once(signal, () => process.exit(code));
  }
}

/** Null: it can't be done here, and isn't demanded. */
async function goInside(mode: Mode): Promise<number | null> {
  const { command, missing } = await entrance();
  if (command === null) {
    console.error(`partition: ${missing}`);
    return mode === "netns" ? unavailableExitCode : null;
  }
  process.env[insideVariable] = "1";
  return startAnew(command);
}

function seedOf(choice: Choice): number | null {
  return choice.kind === "random" ? (choice.seed ?? Math.floor(Math.random() * 2 ** 31)) : null;
}

function chosen({ choice, isFast, nodes }: RunCommand, seed: number | null): Iterable<Scenario> {
  const inLength = (scenario: Scenario): Scenario => (isFast ? scenario : stretched(scenario));
  const inSize = (scenario: Scenario): Scenario => (nodes === null ? scenario : resized(scenario, nodes));
  switch (choice.kind) {
    case "named":
      return choice.names.map((name) => inLength(inSize(scenarioNamed(name))));
    case "file":
      return [inLength(inSize(readScenarioFile(choice.file)))];
    case "all":
      return scenarioNames().map((name) => inLength(inSize(scenarioNamed(name))));
    case "ci":
      return ciSelection.map((name) => inLength(scenarioNamed(name)));
    case "random":
      return drawn(seed ?? 0, choice.minutes, nodes);
    default:
      return choice satisfies never;
  }
}

/** Begins none after the time is over. */
function* drawn(seed: number, minutes: number, nodes: 3 | 5 | null): Iterable<Scenario> {
  const endMs = performance.now() + minutes * 60_000;
  for (let next = seed; next === seed || performance.now() < endMs; next += 1) {
    yield drawScenario(next, nodes ?? (next % 2 === 0 ? 3 : 5));
  }
}
