/** Calls whose outcome their clients never learnt: what the committed log says of them, by (session, request). */
import type { Call } from "./books/calls.js";
import type { LedgerHold } from "./ledger.js";
import type { Run } from "./run.js";
import type { Findings } from "./verdict.js";

export type Resolution =
  | { readonly kind: "known" }
  /** An acquire was granted after all; any other request stands in the log. */
  | { readonly kind: "happened"; readonly hold: LedgerHold | null }
  | { readonly kind: "never" }
  /** Nothing is known of what was sent for it, or the log is not known to its end. */
  | { readonly kind: "open" };

/** A client that gave up has left an acquire behind, of which its library takes care. */
export function resolve(run: Run, { end, op, sent }: Call): Resolution {
  const isUnknown = end === null || end.result.kind === "unknown" || end.result.kind === "gaveUp";
  if (!isUnknown) return { kind: "known" };
  for (const { session, request } of sent) {
    const found = run.ledger.requestFor(session, request);
    if (op.kind === "acquire" && found?.hold) return { kind: "happened", hold: found.hold };
    if (op.kind !== "acquire" && found !== null) return { kind: "happened", hold: null };
  }
  return { kind: run.isLedgerWhole && run.calls.tellsSending ? "never" : "open" };
}

export function countUnknowns(run: Run, findings: Findings): void {
  for (const call of run.calls.calls.values()) {
    const { kind } = resolve(run, call);
    if (kind === "open") findings.unknownsOpen += 1;
    else if (kind !== "known") findings.unknownsResolved += 1;
  }
}
