/** A rule of the cluster that does not hold: what the watch throws, and the names of its rules (docs/testing.md lists them). */
export type RuleName =
  | "election-safety" // 1
  | "leader-append-only" // 2
  | "log-matching" // 3
  | "leader-completeness" // 4
  | "state-machine-safety" // 5
  | "durable-promises" // 6
  | "commit-agreement" // 7: one entry for one committed index
  | "commit-quorum" // 7: held by a quorum's disks
  | "commit-own-term" // 7: committed by counting an entry of the leader's term
  | "match-index" // 7: no more than the peer's disk holds
  | "monotonic" // 7
  | "contiguity" // 8
  | "configuration" // 9
  | "vote-quorum" // 1, 9: elected by a majority of the voters, and by them alone
  | "removed-node" // 9: whose removal is committed gets no vote and has none
  | "wiped-node" // 6, 9: an emptied directory doesn't take part under its old id
  | "quorum-contact" // 10
  | "pre-vote" // 10, 22: nobody campaigns who can't win
  | "stickiness" // 22: nobody who hears its leader helps another to its place
  | "quorum-round" // 15, 17: asked for before it began
  | "counted-silence" // 15: no renewal while silence counts
  | "lock-machine" // 11
  | "told-changes" // a watch misses nothing without a gap
  | "sequencers" // what is said of a sequencer, or of the keys, is so
  | "bounds" // 23
  | "convergence" // 24
  /** What else the core says of a single node. */
  | "core";

export class InvariantError extends Error {
  readonly rule: RuleName;

  constructor(rule: RuleName, facts: string) {
    super(`broken invariant ${rule}: ${facts}`);
    this.name = "InvariantError";
    this.rule = rule;
  }
}

export function demand(condition: boolean, rule: RuleName, facts: () => string): asserts condition {
  if (!condition) throw new InvariantError(rule, facts());
}
