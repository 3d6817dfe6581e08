/**
 * Tokens as clients saw them, in real time (invariant 12), with or without a log: a generation that began after another was answered bears
 * a greater token, whatever the names. A shared acquire may join a running generation: it is held to its own name's tokens only, unless the
 * log says that it began one.
 */
import { acquiredBy } from "../books/calls.js";
import type { Acquired, AcquireOperation, Call } from "../books/calls.js";
import type { Grant } from "../log-words.js";
import type { Run } from "../run.js";
import { grantText } from "../texts.js";
import type { Findings } from "../verdict.js";

interface Highest {
  readonly token: number;
  readonly position: number;
}

const none: Highest = { token: -1, position: -1 };

export function checkTokenOrder(run: Run, findings: Findings): void {
  const order = new TokenOrder(run, findings);
  for (const event of run.history.events) {
    const call = event.kind === "call" || event.kind === "return" ? run.calls.calls.get(event.call) : undefined;
    if (call === undefined || call.op.kind !== "acquire") continue;
    if (event.kind === "call") order.onCall(call, call.op);
    else order.onReturn(call, call.op);
  }
}

class TokenOrder {
  private readonly run: Run;
  private readonly findings: Findings;
  private highest: Highest = none;
  private readonly highestOf: Map<string, Highest> = new Map();
  /** What had been answered when an open call was made: at all, and at each of its names. */
  private readonly before: Map<number, { readonly all: Highest; readonly ofNames: readonly Highest[] }> = new Map();
  /** Grant -> who bears it. */
  private readonly bearers: Map<string, { readonly call: Call; readonly isShared: boolean }> = new Map();

  constructor(run: Run, findings: Findings) {
    this.run = run;
    this.findings = findings;
  }

  onCall(call: Call, { names }: AcquireOperation): void {
    const ofNames = names.map((name) => this.highestOf.get(name) ?? none);
    this.before.set(call.call, { all: this.highest, ofNames });
  }

  onReturn(call: Call, { names, mode }: AcquireOperation): void {
    const before = this.before.get(call.call);
    this.before.delete(call.call);
    const acquired = acquiredBy(call);
    if (before === undefined || acquired === null || call.end === null) return;
    for (const grant of acquired.grants) {
      this.findings.judged("token-order");
      this.checkBearer(call, grant, mode === "shared");
      const beganIt = mode !== "shared" || this.beganGeneration(acquired, grant);
      const ofName = before.ofNames[names.indexOf(grant.name)] ?? none;
      const isTooOld = beganIt ? grant.token <= before.all.token : grant.token < ofName.token;
      if (!isTooOld) continue;
      const other = beganIt ? before.all : ofName;
      const problem = `call ${call.call} of ${call.client} got ${grantText(grant)}; token ${other.token} was answered before it began`;
      this.findings.violation("token-order", problem, [other.position, call.position, call.end.position]);
    }
    for (const grant of acquired.grants) this.raise(grant, call.end.position);
  }

  private raise({ name, token }: Grant, position: number): void {
    if (token > this.highest.token) this.highest = { token, position };
    if (token > (this.highestOf.get(name) ?? none).token) this.highestOf.set(name, { token, position });
  }

  private checkBearer(call: Call, grant: Grant, isShared: boolean): void {
    const key = grantText(grant);
    const other = this.bearers.get(key);
    this.bearers.set(key, { call, isShared });
    if (other === undefined || (isShared && other.isShared) || call.end === null) return;
    const problem = `calls ${other.call.call} and ${call.call} both got ${key}`;
    this.findings.violation("token-order", problem, [other.call.end?.position ?? 0, call.end.position]);
  }

  private beganGeneration({ session, request }: Acquired, { token }: Grant): boolean {
    if (session === null || request === null) return false;
    return this.run.ledger.requestFor(session, request)?.hold?.index === token;
  }
}
