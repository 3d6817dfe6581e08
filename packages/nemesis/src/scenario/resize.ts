/** A scenario in another length, or on another number of nodes. */
import { checkRoles } from "./parse.js";
import type { Scenario } from "./scenario.js";

/** All of its times made longer, as its `seconds` say. */
export function stretched(scenario: Scenario): Scenario {
  const factor = scenario.seconds / scenario.fastSeconds;
  const schedule = scenario.schedule.map((step) => {
    const forSeconds = step.forSeconds === null ? null : step.forSeconds * factor;
    return { ...step, at: step.at * factor, forSeconds };
  });
  return { ...scenario, fastSeconds: scenario.seconds, schedule };
}

/** Throws ScenarioError when its roles are more than the nodes. */
export function resized(scenario: Scenario, nodes: 3 | 5): Scenario {
  const changed = { ...scenario, nodes };
  checkRoles(changed);
  return changed;
}
