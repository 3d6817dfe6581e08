/** Nodes against each other: the same log, applied in order, with equal effects and equal states (invariants 1, 5 and 24). */
import type { EventOf, HistoryEvent } from "../history.js";
import type { Effect } from "../log-words.js";
import type { Run } from "../run.js";
import { effectText, subjectOf } from "../texts.js";
import type { Findings } from "../verdict.js";

interface Seen<Value> {
  readonly value: Value;
  readonly position: number;
}

export function checkAgreement(run: Run, findings: Findings): void {
  const agreement = new Agreement(run, findings);
  for (const [position, event] of run.history.events.entries()) agreement.check(event, position);
  checkTerms(run, findings);
}

/** At rest: everything committed is applied everywhere, and all are equal. */
export function checkConvergence(run: Run, findings: Findings): void {
  let first: Seen<EventOf<"final">> | null = null;
  const last = run.log.entries.at(-1);
  for (const [position, event] of run.history.events.entries()) {
    if (event.kind !== "final") continue;
    findings.judged("convergence");
    const { node, commitIndex, lastApplied, stateHash, configuration } = event;
    if (last !== undefined && (commitIndex !== last.event.index || lastApplied !== last.event.index)) {
      const problem = `${node} ends at commitIndex ${commitIndex}, lastApplied ${lastApplied}; the log at ${last.event.index}`;
      findings.violation("convergence", problem, [last.position, position]);
    }
    first ??= { value: event, position };
    const other = first.value;
    if (other.commitIndex !== commitIndex || other.lastApplied !== lastApplied || other.stateHash !== stateHash) {
      findings.violation("convergence", `${node} and ${other.node} end differently`, [first.position, position]);
    } else if (other.configuration !== configuration) {
      const problem = `${node} ends with configuration ${configuration}, ${other.node} with ${other.configuration}`;
      findings.violation("convergence", problem, [first.position, position]);
    }
  }
}

class Agreement {
  private readonly run: Run;
  private readonly findings: Findings;
  /** Term -> who leads it. */
  private readonly leaders: Map<number, Seen<string>> = new Map();
  private readonly states: Map<number, Seen<string>> = new Map();
  /** Node -> what its machine has applied. */
  private readonly applied: Map<string, number> = new Map();

  constructor(run: Run, findings: Findings) {
    this.run = run;
    this.findings = findings;
  }

  check(event: HistoryEvent, position: number): void {
    switch (event.kind) {
      case "leader":
        this.onLeader(event, position);
        return;
      case "started":
        this.applied.set(event.node, event.index);
        return;
      case "installed":
        this.onInstalled(event, position);
        return;
      case "applied":
        this.onApplied(event, position);
        return;
      default:
        return;
    }
  }

  private onLeader({ node, term }: EventOf<"leader">, position: number): void {
    this.findings.judged("election-safety");
    const other = this.leaders.get(term);
    if (other === undefined) this.leaders.set(term, { value: node, position });
    else if (other.value !== node) {
      const problem = `${other.value} and ${node} both lead term ${term}`;
      this.findings.violation("election-safety", problem, [other.position, position]);
    }
  }

  private onInstalled(event: EventOf<"installed">, position: number): void {
    const { node, index } = event;
    this.findings.judged("agreement");
    const last = this.applied.get(node) ?? 0;
    this.applied.set(node, index);
    if (index < last) {
      this.findings.violation("agreement", `${node} goes back from ${last} to a snapshot of ${index}`, [position]);
    }
    this.compareStates(event, position);
  }

  private onApplied(event: EventOf<"applied">, position: number): void {
    const { node, index, hash } = event;
    this.findings.judged("agreement");
    const last = this.applied.get(node) ?? index - 1;
    this.applied.set(node, index);
    if (index !== last + 1) {
      this.findings.violation("agreement", `${node} applies entry ${index} after ${last}`, [position]);
    }
    const committed = this.run.log.entryAt(index);
    if (committed !== null && committed.event.hash !== hash) {
      const problem = `${node} applies another entry ${index} than was committed`;
      this.findings.violation("agreement", problem, [committed.position, position]);
    }
    this.compareStates(event, position);
    this.compareEffects(event, position);
  }

  private compareStates({ node, index, stateHash }: EventOf<"applied" | "installed">, position: number): void {
    if (stateHash === null) return;
    const other = this.states.get(index);
    if (other === undefined) this.states.set(index, { value: stateHash, position });
    else if (other.value !== stateHash) {
      const problem = `${node}'s state at ${index} is not that of another node, or of itself before`;
      this.findings.violation("agreement", problem, [other.position, position]);
    }
  }

  private compareEffects({ node, index, effects }: EventOf<"applied">, position: number): void {
    const report = this.run.log.reportOf(index);
    if (effects === null || report === null || report.position === position) return;
    const others = report.event.effects ?? [];
    if (sortedTexts(effects) !== sortedTexts(others)) {
      const problem = `${node} and ${report.event.node} say different things of entry ${index}`;
      this.findings.violation("agreement", problem, [report.position, position]);
    }
  }
}

function checkTerms(run: Run, findings: Findings): void {
  let last = { term: 0, position: 0 };
  for (const { event, position } of run.log.entries) {
    findings.judged("agreement");
    if (event.term < last.term) {
      const problem = `entry ${event.index} is of term ${event.term}, after one of term ${last.term}`;
      findings.violation("agreement", problem, [last.position, position]);
    }
    last = { term: event.term, position };
  }
}

function sortedTexts(effects: readonly Effect[]): string {
  const texts = effects.flatMap((effect) => {
    const subject = subjectOf(effect);
    return subject === null ? [] : [`${subject}: ${effectText(effect)}`];
  });
  return texts.sort().join("\n");
}
