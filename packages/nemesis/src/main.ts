/** The command line: npm run partition -- --help. */
import { existsSync, mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readCommand, usage } from "./command-line.js";
import type { RunCommand } from "./command-line.js";
import { ProxyNetwork } from "./network/proxy/proxy-network.js";
import { NoMachine } from "./run/no-machine.js";
import { runScenario } from "./run/run.js";
import { linesOf } from "./run/tell.js";
import { readScenarioFile, scenarioNamed, scenarioNames } from "./scenario/library.js";
import { ScenarioError } from "./scenario/parse.js";
import { stretched } from "./scenario/scenario.js";
import type { Scenario } from "./scenario/scenario.js";
import { missingDriver } from "./store/driver.js";
import { missingPostgres } from "./store/postgres.js";

/** EX_USAGE of sysexits.h. */
const usageExitCode = 64;
/** EX_UNAVAILABLE. */
const unavailableExitCode = 69;

const read = readCommand(process.argv.slice(2));
if ("problems" in read) {
  for (const problem of read.problems) console.error(`partition: ${problem}`);
  console.error(usage);
  process.exitCode = usageExitCode;
} else if (read.command.kind === "help") console.log(usage);
else if (read.command.kind === "list") {
  for (const name of scenarioNames()) console.log(`${name}: ${scenarioNamed(name).about}`);
} else await run(read.command);

async function run(command: RunCommand): Promise<void> {
  let scenarios: readonly Scenario[];
  try {
    scenarios = chosen(command);
  } catch (error) {
    if (!(error instanceof ScenarioError)) throw error;
    console.error(error.message);
    process.exitCode = usageExitCode;
    return;
  }
  const missing = missingDriver() ?? missingPostgres();
  if (missing !== null) {
    console.error(`partition: ${missing}`);
    process.exitCode = unavailableExitCode;
    return;
  }
  const out = command.out ?? mkdtempSync(join(tmpdir(), "holdfast-partition-"));
  for (const scenario of scenarios) {
    const folder = newFolder(out, scenario.name);
    const { summary } = await runScenario({
      scenario: command.isFast ? scenario : stretched(scenario),
      folder,
      seed: null,
      openNetwork: (parties) => ProxyNetwork.open(parties),
      openMachine: () => Promise.resolve(new NoMachine()),
    });
    for (const line of linesOf(summary, folder)) console.log(line);
    if (!summary.isPassed) process.exitCode = 1;
  }
}

/** A run never goes on with what another has left. */
function newFolder(out: string, name: string): string {
  for (let number = 1; ; number += 1) {
    const folder = join(out, number === 1 ? name : `${name}-${number}`);
    if (existsSync(folder)) continue;
    mkdirSync(folder, { recursive: true });
    return folder;
  }
}

function chosen({ choice }: RunCommand): readonly Scenario[] {
  switch (choice.kind) {
    case "named":
      return choice.names.map(scenarioNamed);
    case "file":
      return [readScenarioFile(choice.file)];
    default:
      return scenarioNames().map(scenarioNamed);
  }
}
