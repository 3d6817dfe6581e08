/**
 * Goes through one scope of the consensus core, and says in words what came of it. Breadth first finds what is near the start soon; the
 * covering search leaves out so many states that it comes to the end of a scope.
 */
import { exploreCovering } from "../covering-search.js";
import { explore } from "../search.js";
import type { Bounds } from "../search.js";
import { RaftModel } from "./model.js";
import { openRaft } from "./opened-core.js";
import type { OpenedRaft } from "./opened-core.js";
import { scopes } from "./scopes.js";
import { actionText, clusterText } from "./story.js";

export const raftScopeNames: readonly string[] = Object.keys(scopes);

export type Order = "breadth" | "covering";

export interface Report {
  /** No rule was broken. */
  readonly isSound: boolean;
  readonly isComplete: boolean;
  readonly distinct: number;
  readonly lines: readonly string[];
}

export async function exploreRaft(
  name: string,
  bounds: Bounds,
  order: Order = "covering",
  opened?: OpenedRaft,
): Promise<Report> {
  const scope = scopes[name];
  if (scope === undefined) throw new Error(`no scope is called ${name}; there are ${raftScopeNames.join(", ")}`);
  const model = new RaftModel(opened ?? (await openRaft()), scope);
  const { states, distinct, depth, isComplete, violation } =
    order === "breadth" ? explore(model, bounds) : exploreCovering(model, bounds);
  const { nodeStates, messages } = model.parts;
  const extent = isComplete ? "complete" : "not complete";
  const figures = `${states} states, ${distinct} distinct, depth ${depth}, ${extent}; ${nodeStates} states of a node, ${messages} messages`;
  if (violation === null) return { isSound: true, isComplete, distinct, lines: [figures] };
  const actions = model.shorten(model.spell(violation.path));
  const end = model.replay(actions);
  const lines = [figures, `broken: ${end?.rule ?? violation.rule}`];
  for (const action of actions) lines.push(`  ${actionText(action, model.ids)}`);
  lines.push("then:", ...clusterText(end?.state ?? violation.state, model.ids).map((line) => `  ${line}`));
  return { isSound: false, isComplete, distinct, lines };
}
