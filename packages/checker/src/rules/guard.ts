/** What a guarded resource accepted and refused (invariant 21). */
import { acquiredBy } from "../books/calls.js";
import type { EventOf } from "../history.js";
import type { Run } from "../run.js";
import { placeText } from "../texts.js";
import type { Findings } from "../verdict.js";

interface Register {
  /** Highest token surely accepted, and where. */
  accepted: number;
  acceptedPosition: number;
  /** Highest that may have been: with the writes of which nobody knows. */
  possible: number;
}

export function checkGuard(run: Run, findings: Findings): void {
  const registers = new Map<string, Register>();
  const grants = new Grants(run);
  for (const { event, position } of run.calls.writes) {
    findings.judged("guard");
    const { client, resource, token, accepted } = event;
    const register = registers.get(resource) ?? { accepted: -1, acceptedPosition: position, possible: -1 };
    registers.set(resource, register);
    if (accepted === false) {
      if (token < register.possible) continue;
      const problem = `${resource} refuses token ${token} of ${client}, and has accepted none above it`;
      findings.violation("guard", problem, [position]);
      continue;
    }
    register.possible = Math.max(register.possible, token);
    if (accepted === null) continue;
    checkAccepted(event, position, register, findings);
    if (!grants.isGranted(event, position)) {
      const problem = `${resource} accepts token ${token} of ${client}, to whom it was never granted`;
      findings.violation("guard", problem, [position]);
    }
  }
}

function checkAccepted(
  { client, resource, token }: EventOf<"guardWrite">,
  position: number,
  register: Register,
  findings: Findings,
): void {
  if (token < register.accepted) {
    const problem = `${resource} accepts token ${token} of ${client} after token ${register.accepted}`;
    findings.violation("guard", problem, [register.acceptedPosition, position]);
    return;
  }
  register.accepted = token;
  register.acceptedPosition = position;
}

/** By the log; without one, by what the clients say they acquired. */
class Grants {
  private readonly run: Run;
  /** Grant and client -> where the client learnt of it first. */
  private readonly acquired: Map<string, number> = new Map();

  constructor(run: Run) {
    this.run = run;
    if (!run.log.isEmpty) return;
    for (const call of run.calls.calls.values()) {
      for (const { name, slot, token } of acquiredBy(call)?.grants ?? []) {
        const key = `${placeText(name, slot)}@${token} ${call.client}`;
        this.acquired.set(key, Math.min(this.acquired.get(key) ?? Number.POSITIVE_INFINITY, call.end?.position ?? 0));
      }
    }
  }

  isGranted({ client, name, slot, token }: EventOf<"guardWrite">, position: number): boolean {
    const { log, ledger, calls } = this.run;
    if (log.isEmpty) {
      const learntAt = this.acquired.get(`${placeText(name, slot)}@${token} ${client}`);
      return learntAt !== undefined && learntAt < position;
    }
    return (
      !this.run.isLedgerWhole ||
      ledger.holdsWith(name, slot, token).some(({ session, index }) => {
        const owner = calls.ownerOf(session);
        return (owner === null || owner === client) && this.run.commitPosition(index) < position;
      })
    );
  }
}
