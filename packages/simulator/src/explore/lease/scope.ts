/** What is explored: how much may be on its way, how late things may be, and what is demanded. Times are in eighths of the TTL. */
import type { LeaseKeeper, LeaseKeeperHost } from "@holdfast/server/parts";
import type { Keeper } from "./leader-run.js";
import type { Machine } from "./machine-table.js";

export interface LeaseScope {
  /**
   * `safety`: anything may be late or lost. `dead`: the servers are prompt, the client dies at any time (P6). `live`: the client sends
   * as it should, what it sends arrives, and the servers are prompt.
   */
  readonly mode: "safety" | "dead" | "live";
  /** Time passes in steps of so many eighths: 1, 2 or 4. */
  readonly tickUnits: number;
  /** Entries that are proposed and not applied. */
  readonly tailMax: number;
  /** Keepalives on their way to the leader. */
  readonly flyingMax: number;
  /** An older keepalive is lost. */
  readonly flyingUnitsMax: number;
  /** `decide` comes at most so late after its deadline. */
  readonly lateUnitsMax: number;
  /** A leader whose rounds aren't confirmed is one no more (CheckQuorum): no round takes longer, once it has begun. */
  readonly roundUnitsMax: number;
  /** No path goes on when one leader has heard nothing for so long. */
  readonly silentUnitsMax: number;
  /** Leaderships last at least so long; 0: they may change at any moment, as often as you like. */
  readonly unitsPerLeaderMin: number;
  /** From the end of a leadership to the start of the next. */
  readonly electionUnits: number;
  /** A deposed leader goes on hearing the client, without knowing. */
  readonly hasDeposed: boolean;
  /** It knows at last when it has heard nothing, or decided nothing, for so long. */
  readonly deposedUnitsMax: number;
  /** The leader's loop may be stuck: time passes, and its lease clock stands still. */
  readonly hasStalls: boolean;
  /** Transfers may begin at any moment, and come to nothing. */
  readonly hasTransfers: boolean;
  /** `live`: the client sends at least so often. */
  readonly renewUnits: number;
  /** `dead`: the session must have ended so long after its client's death. */
  readonly endUnitsMax: number;
}

export const rules = {
  early: "P4/P5: the session has ended while its client may believe that it holds the lock",
  suspected: "a keepalive was acknowledged between the proposal of a suspicion, or of an expiry, and a renewal",
  conditional: "a session without a counted silence was expired",
  counted: "an expiry was proposed before the log has counted eight eighths",
  round: "an expiry was proposed without a quorum round that began after the deadline",
  held: "the lock is held, and its holder has ended",
  immortal: "P6: the session of a dead client lives on",
  lost: "a live client that renews in time has lost its session",
} as const;

export type Rule = keyof typeof rules;

/** Other code in the place of the real one, to show that the search finds what is wrong with it. */
export interface Planted {
  readonly keeper?: (host: LeaseKeeperHost) => Keeper;
  readonly machine?: () => Machine;
  /** Rules that aren't checked: to see that others find it too. */
  readonly without?: readonly Rule[];
}

export type { Keeper, LeaseKeeper, LeaseKeeperHost, Machine };

const safety: LeaseScope = {
  mode: "safety",
  tickUnits: 2,
  tailMax: 3,
  flyingMax: 1,
  flyingUnitsMax: 2,
  lateUnitsMax: 2,
  roundUnitsMax: 2,
  silentUnitsMax: 10,
  unitsPerLeaderMin: 0,
  electionUnits: 0,
  hasDeposed: false,
  deposedUnitsMax: 4,
  hasStalls: false,
  hasTransfers: false,
  renewUnits: 0,
  endUnitsMax: 0,
};

/** TTL/2 between leader changes. The bound of P6 is 2 TTL and three election timeouts, each a thirtieth of the TTL here: under a unit. */
const dead: LeaseScope = {
  ...safety,
  mode: "dead",
  tickUnits: 1,
  lateUnitsMax: 0,
  silentUnitsMax: 24,
  unitsPerLeaderMin: 4,
  endUnitsMax: 16,
};

/** A third of the TTL is less than three eighths. */
const live: LeaseScope = { ...dead, mode: "live", flyingUnitsMax: 1, renewUnits: 3 };
const halves = { tickUnits: 4, lateUnitsMax: 4, flyingUnitsMax: 4, roundUnitsMax: 4, silentUnitsMax: 12 };

/** By name. The tests explore the small ones to their end. */
export const scopes: Readonly<Record<string, LeaseScope>> = {
  live,
  dead,
  safety,
  "safety-troubled": { ...safety, ...halves, hasStalls: true, hasTransfers: true },
  "safety-deposed": { ...safety, ...halves, hasDeposed: true },
  "safety-two-keepalives": { ...safety, flyingMax: 2, flyingUnitsMax: 4, tailMax: 4 },
  "safety-late": { ...safety, flyingUnitsMax: 8, lateUnitsMax: 4, roundUnitsMax: 4, tailMax: 4 },
  "safety-eighths": { ...safety, tickUnits: 1, lateUnitsMax: 1 },
  "safety-troubled-quarters": { ...safety, hasStalls: true, hasTransfers: true },
  "safety-deposed-quarters": { ...safety, hasDeposed: true },
};
