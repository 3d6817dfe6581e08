/** The exhaustive exploration of the lease rules over the real lease keeper and lock machine. */
import { explore } from "../search.js";
import type { Bounds, Result } from "../search.js";
import { LeaseModel } from "./lease-model.js";
import type { LeaseState } from "./lease-model.js";
import type { LeaseScope, Planted } from "./scope.js";

export { rules, scopes } from "./scope.js";
export type { Keeper, LeaseScope, Machine, Planted, Rule } from "./scope.js";

export interface LeaseOptions extends Bounds {
  readonly scope: LeaseScope;
  readonly planted?: Planted;
  /** Checks the keys too, at twice the cost: two histories of the lease keeper that count as one must go on alike. */
  readonly hasTwins?: boolean;
}

export interface LeaseResult extends Result<LeaseState, string> {
  /** Distinct states of the real code that were met. */
  readonly keepers: number;
  readonly machines: number;
  readonly judged: { readonly ends: number; readonly acknowledgements: number; readonly refusedExpiries: number };
  /** The longest time from a client's death to the end of its session, in eighths of the TTL; -1: none died. */
  readonly longestDead: number;
}

export function exploreLease(options: LeaseOptions): LeaseResult {
  const model = new LeaseModel(options.scope, options.planted, options.hasTwins);
  const result = explore(model, options);
  const { longestDead, judged } = model.judge;
  return { ...result, keepers: model.leaders.size, machines: model.machines.size, judged, longestDead };
}
