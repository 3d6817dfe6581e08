/** The scenarios that come along: scripts/partition/scenarios, one file each, named as the scenario in it. */
import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseScenario, ScenarioError } from "./parse.js";
import type { Scenario } from "./scenario.js";

const folder = fileURLToPath(new URL("../../../../../scripts/partition/scenarios", import.meta.url));
const ending = ".json";

/** Of every kind of fault the one that most was found with; in their short form they take less than five minutes. */
export const ciSelection: readonly string[] = [
  "leader-isolated",
  "leader-deaf",
  "leader-stopped",
  "all-killed",
  "holder-stopped",
  "write-delayed",
  "log-bit-flipped",
];

export function scenarioNames(): readonly string[] {
  const files = readdirSync(folder).filter((file) => file.endsWith(ending));
  return files.map((file) => basename(file, ending)).sort();
}

/** Throws ScenarioError, for a name that there isn't as well. */
export function scenarioNamed(name: string): Scenario {
  if (!scenarioNames().includes(name)) {
    throw new ScenarioError(name, [
      { path: "", problem: `there is no such scenario; there are ${scenarioNames().join(", ")}` },
    ]);
  }
  const file = join(folder, `${name}${ending}`);
  const scenario = readScenarioFile(file);
  if (scenario.name !== name)
    throw new ScenarioError(file, [{ path: "name", problem: `must be ${name}, as the file is named` }]);
  return scenario;
}

/** Throws ScenarioError, for a file that can't be read as well. */
export function readScenarioFile(file: string): Scenario {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    throw new ScenarioError(file, [{ path: "", problem: `can't be read: ${(error as Error).message}` }]);
  }
  return parseScenario(text, file);
}
