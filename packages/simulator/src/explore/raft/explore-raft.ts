/**
 * Goes through one scope of the consensus core, and says in words what came of it. The merging search comes to the end of scopes that no
 * other does. Breadth first finds what is near the start soon, and goes through every single state of the cluster.
 */
import { exploreCovering } from "../covering-search.js";
import { exploreMerging } from "../merging-search.js";
import { explore } from "../search.js";
import type { Bounds, Result, Violation } from "../search.js";
import { RaftModel } from "./model.js";
import type { Cluster, ClusterAction } from "./model.js";
import { openRaft } from "./opened-core.js";
import type { OpenedRaft } from "./opened-core.js";
import { scopes } from "./scopes.js";
import { actionText, clusterText } from "./story.js";

export type Order = "breadth" | "covering" | "merging";

export interface Report {
  /** No rule was broken. */
  readonly isSound: boolean;
  readonly isComplete: boolean;
  readonly distinct: number;
  readonly lines: readonly string[];
}

type ClusterViolation = Violation<Cluster, ClusterAction>;

export async function exploreRaft(
  name: string,
  bounds: Bounds,
  order: Order = "merging",
  opened?: OpenedRaft,
): Promise<Report> {
  const scope = scopes[name];
  if (scope === undefined) throw new Error(`no scope is called ${name}; there are ${Object.keys(scopes).join(", ")}`);
  const model = new RaftModel(opened ?? (await openRaft()), scope);
  const result = searchIn(model, bounds, order);
  const { violation } = result;
  if (violation === null || canHappen(model, violation)) return reportOf(model, result, order);
  // Only merged clusters have broken it. A single one that does is looked for; while none is found, the rule is in doubt.
  const single = exploreCovering(model, bounds);
  const report = reportOf(model, single, "covering");
  if (single.isComplete || single.violation !== null) return report;
  return { ...report, isSound: false, lines: [...report.lines, `in doubt, no run was found: ${violation.rule}`] };
}

function searchIn(model: RaftModel, bounds: Bounds, order: Order): Result<Cluster, ClusterAction> {
  switch (order) {
    case "breadth":
      return explore(model, bounds);
    case "covering":
      return exploreCovering(model, bounds);
    case "merging":
      return exploreMerging(model, bounds);
  }
}

function canHappen(model: RaftModel, violation: ClusterViolation): boolean {
  return model.replay(model.spell(violation.path)) !== null;
}

function reportOf(model: RaftModel, result: Result<Cluster, ClusterAction>, order: Order): Report {
  const { states, distinct, depth, isComplete, violation } = result;
  const { nodeStates, messages } = model.parts;
  const extent = isComplete ? "complete" : "cut";
  const kind = order === "merging" ? "merged" : "distinct";
  const figures = `${states} steps, ${distinct} ${kind} states, depth ${depth}, ${extent}; ${nodeStates} states of a node, ${messages} messages`;
  const lines = violation === null ? [figures] : [figures, ...storyOf(model, violation)];
  return { isSound: violation === null, isComplete, distinct, lines };
}

/** What happened, without what the violation does not need. */
function storyOf(model: RaftModel, violation: ClusterViolation): string[] {
  const actions = model.shorten(model.spell(violation.path));
  const end = model.replay(actions);
  const lines = [`broken: ${end?.rule ?? violation.rule}`];
  for (const action of actions) lines.push(`  ${actionText(action, model.ids)}`);
  lines.push("then:", ...clusterText(end?.state ?? violation.state, model.ids).map((line) => `  ${line}`));
  return lines;
}
