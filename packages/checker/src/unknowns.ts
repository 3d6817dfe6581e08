/** Calls whose outcome their clients never learnt: what the committed log says of them, by (session, request). */
import type { Call } from "./books/calls.js";
import type { Run } from "./run.js";
import type { Findings } from "./verdict.js";

/**
 * happened: an acquire was granted after all, a force ended something, any other request stands in the log. open: nothing is known of what
 * was sent for it, or the log is not known to its end.
 */
export type Resolution = "known" | "happened" | "never" | "open";

/** A client that gave up has left an acquire behind, of which its library takes care. A read that nobody answered has no effect. */
export function resolve(run: Run, { end, op, sent }: Call): Resolution {
  const isUnknown = end === null || end.result.kind === "unknown" || end.result.kind === "gaveUp";
  if (!isUnknown || op.kind === "inspect") return "known";
  const found = sent.flatMap(({ session, request }) => run.ledger.requestFor(session, request) ?? []);
  switch (op.kind) {
    case "acquire":
      if (found.some(({ hold }) => hold !== null)) return "happened";
      break;
    case "forceRelease": {
      const isForced = run.ledger.holds.some(({ grants, end: over }) => {
        return over?.how === "forced" && grants.some(({ name, token }) => name === op.name && token === op.token);
      });
      return isForced ? "happened" : run.isLedgerWhole ? "never" : "open";
    }
    case "release":
    case "close":
      if (found.length > 0) return "happened";
      break;
    default:
      return op satisfies never;
  }
  // A closing is no numbered command of one session: what was sent for it need not be told.
  return run.isLedgerWhole && run.calls.tellsSending && op.kind !== "close" ? "never" : "open";
}

export function countUnknowns(run: Run, findings: Findings): void {
  for (const call of run.calls.calls.values()) {
    const resolution = resolve(run, call);
    if (resolution !== "known") findings.unknowns[resolution] += 1;
  }
}
