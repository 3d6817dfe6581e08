/** What is judged, and how a verdict comes together. */

/** P1 to P9: docs/guarantees.md. */
export const ruleTexts = {
  "well-formed": "the history is one that can be judged: else nothing more is",
  agreement: "all nodes apply the same entries, each once and in order, with the same effects, to the same state",
  "election-safety": "a term has one leader",
  exclusion: "P1: no conflicting holders, and none of a dead session",
  "lost-wakeup": "a waiter that is grantable is granted in the same entry",
  fifo: "P8: grants follow the log order of requests; who is dead or cancelled is never granted",
  "generation-token": "P2: a token is the index of the entry that began the generation",
  "one-effect": "P7: a numbered request is executed once, and has one answer",
  "lock-delay": "a lock is closed to what conflicts with the ended hold until its lock-delay ends",
  "conditional-expiry": "an expiry changes nothing for a session whose silence count is 0",
  "stale-proposal": "an entry that a leader's clock decided stands in the term it was decided in",
  replay: "a node's machine says of an entry what the rules say",
  "token-order": "P2: tokens rise in real time, and two holds share one only in a shared generation",
  "told-committed": "a client learns a token only of a committed grant to it",
  "acknowledged-lasts": "P3: what a client was told stands in the committed log",
  "early-expiry": "P4: no session ends before its TTL has passed since its last acknowledged keepalive",
  "early-end": "a maxHold and a lock-delay last as long as was asked for",
  "hold-overlap": "P5: two libraries never say 'held' at once where only one may hold",
  "late-deadline": "P5: a library counts its lease from the sending of the keepalive that was acknowledged last",
  "split-brain-keepalive": "a keepalive is acknowledged only by a leader that still led after it was sent",
  guard: "a resource accepts no older token, refuses only older ones, and gets only granted ones",
  "dead-holder": "P6: a dead holder's session ends within 2 TTL + 3 election timeouts",
  convergence: "at rest all nodes have applied everything and are equal",
  linearizability: "what clients saw of each lock fits one order of operations",
  "linearizability-unknown": "the search for that order came to an end",
} as const;

export type Rule = keyof typeof ruleTexts;

export const rules: readonly Rule[] = Object.keys(ruleTexts) as Rule[];

export interface Violation {
  readonly rule: Rule;
  readonly message: string;
  /** Positions in the history's events, rising: what to look at. */
  readonly events: readonly number[];
}

export interface Unknowns {
  readonly happened: number;
  readonly never: number;
  readonly open: number;
}

export interface Counts {
  readonly events: number;
  /** Facts that each rule has looked at. A rule with 0 has judged nothing. */
  readonly judged: Readonly<Record<Rule, number>>;
  /** Facts passed over because the promise doesn't cover them: clocks that left the bound, a paused client, no quorum, a short TTL. */
  readonly excluded: Readonly<Record<Rule, number>>;
  /** Violations in all; `violations` shows the first ones of each rule. */
  readonly found: Readonly<Record<Rule, number>>;
  /** Calls whose outcome their clients never learnt, and what the log says of them; `open`: nothing. */
  readonly unknowns: Unknowns;
  /** Of the linearizability search: locks, operations and steps. */
  readonly locks: number;
  readonly operations: number;
  readonly steps: number;
}

export interface Verdict {
  readonly ok: boolean;
  readonly violations: readonly Violation[];
  readonly counts: Counts;
}

/** Violations shown of one rule. */
const shownMax = 20;

export class Findings {
  readonly violations: Violation[] = [];
  readonly found: Record<Rule, number> = zeros();
  readonly unknowns: { happened: number; never: number; open: number } = { happened: 0, never: 0, open: 0 };
  locks = 0;
  operations = 0;
  steps = 0;
  private readonly judgedCounts: Record<Rule, number> = zeros();
  private readonly excludedCounts: Record<Rule, number> = zeros();

  judged(rule: Rule): void {
    this.judgedCounts[rule] += 1;
  }

  excluded(rule: Rule): void {
    this.excludedCounts[rule] += 1;
  }

  violation(rule: Rule, message: string, events: readonly number[]): void {
    this.found[rule] += 1;
    if (this.found[rule] > shownMax) return;
    this.violations.push({ rule, message, events: [...new Set(events)].sort((a, b) => a - b) });
  }

  verdict(events: number): Verdict {
    const { violations, found, unknowns, locks, operations, steps } = this;
    const counts = {
      events,
      judged: this.judgedCounts,
      excluded: this.excludedCounts,
      found,
      unknowns,
      locks,
      operations,
      steps,
    };
    return { ok: violations.length === 0, violations, counts };
  }
}

function zeros(): Record<Rule, number> {
  return Object.fromEntries(rules.map((rule) => [rule, 0])) as Record<Rule, number>;
}
