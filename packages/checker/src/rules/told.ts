/** What clients were told, against the committed log (invariants 13, 14 and 19). Judges nothing without a log. */
import { acquiredBy } from "../books/calls.js";
import type { Call } from "../books/calls.js";
import type { EventOf } from "../history.js";
import type { LedgerHold } from "../ledger.js";
import type { Grant } from "../log-words.js";
import type { Run } from "../run.js";
import { grantText, outcomeText, requestText } from "../texts.js";
import type { Findings, Rule } from "../verdict.js";

export function checkTold(run: Run, findings: Findings): void {
  if (run.log.isEmpty) return;
  const told = new Told(run, findings);
  for (const { event, position } of run.calls.told) told.checkOutcome(event, position);
  for (const { event, position } of run.calls.opened) told.checkOpened(event, position);
  for (const { event, position } of run.calls.ended) told.checkEnded(event, position);
  for (const call of run.calls.calls.values()) {
    told.checkAcquired(call);
    told.checkReleased(call);
    told.checkForced(call);
  }
}

class Told {
  private readonly run: Run;
  private readonly findings: Findings;

  constructor(run: Run, findings: Findings) {
    this.run = run;
    this.findings = findings;
  }

  checkOutcome({ client, session, request, outcome }: EventOf<"told">, position: number): void {
    const isGrant = outcome.kind === "granted" || outcome.kind === "alreadyGranted";
    const text = outcomeText(outcome);
    const outcomes = this.run.ledger.requestFor(session, request)?.outcomes ?? [];
    const isTrue = outcomes.some((each) => each.text === text && this.wasCommitted(each.index, position));
    const isAnswered = outcomes.some((each) => this.wasCommitted(each.index, position));
    const other: Rule = isAnswered ? "one-effect" : "acknowledged-lasts";
    const rule = isGrant ? "told-committed" : other;
    const who = requestText(session, request);
    this.judge(rule, isTrue, `${client} is told "${text}" of ${who}; the log doesn't say so`, [position]);
    if (!isGrant || !isTrue) return;
    const isOwn = this.isOwn(session, client);
    this.judge("told-committed", isOwn, `${client} is told of a grant to ${who}, another client's`, [position]);
  }

  checkOpened({ client, session, key, ttlMs }: EventOf<"sessionOpened">, position: number): void {
    const known = this.run.ledger.sessions.get(session);
    const isTrue = known?.key === key && known.ttlMs === ttlMs && this.wasCommitted(session, position);
    const problem = `${client} is told of its session ${session} with a TTL of ${ttlMs} ms; the log doesn't say so`;
    this.judge("acknowledged-lasts", isTrue, problem, [position]);
  }

  checkEnded({ client, session, by }: EventOf<"sessionEnded">, position: number): void {
    if (by !== "cluster") return;
    const end = this.run.ledger.sessions.get(session)?.end ?? null;
    const isTrue = end !== null && this.wasCommitted(end.index, position);
    const problem = `${client} is told that session ${session} is over; in the log it lives`;
    this.judge("acknowledged-lasts", isTrue, problem, [position]);
  }

  checkAcquired(call: Call): void {
    const acquired = acquiredBy(call);
    if (acquired === null || call.end === null) return;
    const { position } = call.end;
    const holds = this.holdsOf(call, acquired.grants).filter((hold) => this.wasCommitted(hold.index, position));
    const isTrue = holds.some((hold) => this.isOwn(hold.session, call.client) && isSame(hold.grants, acquired.grants));
    const grants = acquired.grants.map(grantText).join(" ");
    const problem = `call ${call.call} of ${call.client} acquires ${grants}; no committed grant to it says so`;
    this.judge("told-committed", isTrue, problem, [call.position, position]);
  }

  /** A release that was confirmed, in the log. */
  checkReleased(call: Call): void {
    if (call.op.kind !== "release" || call.end?.result.kind !== "released") return;
    const acquire = this.run.calls.calls.get(call.op.of);
    const grants = acquire === undefined ? null : acquiredBy(acquire)?.grants;
    if (call.end.result.how !== "released" || acquire === undefined || !grants) return;
    const { position } = call.end;
    const isTrue = this.holdsOf(acquire, grants).some(({ end }) => {
      const isGivenBack = end !== null && (end.how === "released" || end.how === "closed");
      return isGivenBack && this.wasCommitted(end.index, position);
    });
    const problem = `call ${call.call} of ${call.client} has released ${grants.map(grantText).join(" ")}; in the log it hasn't`;
    this.judge("acknowledged-lasts", isTrue, problem, [call.position, position]);
  }

  checkForced(call: Call): void {
    if (call.op.kind !== "forceRelease" || call.end?.result.kind !== "forced") return;
    if (call.end.result.ended === 0) return;
    const { name, token } = call.op;
    const { position } = call.end;
    const isTrue = this.run.ledger.holds.some(({ grants, end }) => {
      const isNamed = grants.some((grant) => grant.name === name && grant.token === token);
      return isNamed && end?.how === "forced" && this.wasCommitted(end.index, position);
    });
    const problem = `call ${call.call} has forced ${name}@${token}; in the log it hasn't`;
    this.judge("acknowledged-lasts", isTrue, problem, [call.position, position]);
  }

  /** Those that an acquire may have got, by its request, or by its grants where that isn't known. */
  private holdsOf(call: Call, grants: readonly Grant[]): readonly LedgerHold[] {
    const { session, request } = acquiredBy(call) ?? { session: null, request: null };
    if (session !== null && request !== null) {
      const hold = this.run.ledger.requestFor(session, request)?.hold ?? null;
      return hold === null ? [] : [hold];
    }
    const first = grants[0];
    if (first === undefined) return [];
    const holds = this.run.ledger.holdsWith(first.name, first.slot, first.token);
    return holds.filter((hold) => this.isOwn(hold.session, call.client));
  }

  private isOwn(session: number, client: string): boolean {
    const owner = this.run.calls.ownerOf(session);
    return owner === null || owner === client;
  }

  private wasCommitted(index: number, position: number): boolean {
    return this.run.commitPosition(index) < position;
  }

  private judge(rule: Rule, isTrue: boolean, problem: string, events: readonly number[]): void {
    // Where the ledger ends at a misdeed, what it doesn't know may still be true.
    if (!isTrue && !this.run.isLedgerWhole) {
      this.findings.excluded(rule);
      return;
    }
    this.findings.judged(rule);
    if (!isTrue) this.findings.violation(rule, problem, events);
  }
}

function isSame(some: readonly Grant[], others: readonly Grant[]): boolean {
  return some.map(grantText).sort().join(" ") === others.map(grantText).sort().join(" ");
}
