/** The exploration of the lease rules at the command line: scopes by name, one line each, and the path to what is broken. */
import { closingLine } from "../command-line.js";
import type { Outcome } from "../command-line.js";
import { exploreLease, scopes } from "./index.js";
import type { LeaseResult } from "./index.js";

export interface ReportParts {
  readonly print: (line: string) => void;
  /** For the duration that is shown, and to end in time. */
  readonly nowMs: () => number;
}

export interface ReportOptions {
  /** None: all. */
  readonly names: readonly string[];
  readonly statesMax: number;
  /** Of each scope. */
  readonly msMax: number;
}

/** False when a rule is broken, or there is no such scope. */
export function reportLease({ names, statesMax, msMax }: ReportOptions, { print, nowMs }: ReportParts): boolean {
  const chosen = names.length > 0 ? names : Object.keys(scopes);
  const outcomes: Outcome[] = [];
  for (const name of chosen) {
    const scope = scopes[name];
    if (scope === undefined) {
      print(`no scope is named ${name}; there are ${Object.keys(scopes).join(", ")}`);
      return false;
    }
    const startMs = nowMs();
    const result = exploreLease({ scope, statesMax, isOver: () => nowMs() - startMs > msMax });
    print(`lease ${name}: ${figuresOf(result)}, ${((nowMs() - startMs) / 1_000).toFixed(1)} s`);
    outcomes.push({ name: `lease ${name}`, isSound: result.violation === null, isComplete: result.isComplete });
    if (result.violation === null) continue;
    print(`  broken: ${result.violation.rule}`);
    for (const action of result.violation.path) print(`    ${action}`);
  }
  print(closingLine(outcomes));
  return outcomes.every(({ isSound }) => isSound);
}

function figuresOf(result: LeaseResult): string {
  const { distinct, states, depth, isComplete, keepers, machines, judged, longestDead } = result;
  const extent = isComplete ? "complete" : "cut";
  const size = `${distinct} states by ${states} steps, depth ${depth}, ${extent}`;
  const real = `${keepers} of the lease keeper, ${machines} of the lock machine`;
  const last = longestDead < 0 ? "" : `, a dead holder's session ends within ${longestDead}/8 TTL`;
  return `${size} (${real}; ${judged.ends} ends, ${judged.acknowledgements} acknowledgements${last})`;
}
