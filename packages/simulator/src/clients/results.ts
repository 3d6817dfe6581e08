/** How a library's answers are told to the history. */
import type { CallResult, Outcome } from "@holdfast/checker";
import { HoldfastError } from "@holdfast/client";
import type { LockView, ReleaseResult } from "@holdfast/client";

/** What a call was aborted with. */
export class Abort extends Error {
  constructor() {
    super("the application wants it no more");
  }
}

export function codeOf(error: unknown): string {
  if (error instanceof HoldfastError) return error.code;
  throw error;
}

/** `wasSent`: something has left for it, so it may have taken effect. */
export function acquireFailure(error: unknown, isWaiting: boolean, wasSent: boolean): CallResult {
  if (error instanceof Abort) return { kind: "gaveUp" };
  const code = codeOf(error);
  if (code === "wait_timeout") return { kind: "gaveUp" };
  if (code === "lock_held" || code === "lock_delayed")
    return isWaiting ? { kind: "unknown", code } : { kind: "refused", code };
  // The cluster said so, and nothing is left there.
  if (code === "slots_differ" || code === "invalid_argument") return { kind: "failed", code };
  return wasSent ? { kind: "unknown", code } : { kind: "failed", code };
}

/** tryAcquire's null: which of the two it was, only the cluster's answer says. */
export function refusedBy(outcome: Outcome | null): CallResult {
  if (outcome?.kind === "lockHeld") return { kind: "refused", code: "lock_held" };
  if (outcome?.kind === "lockDelayed") return { kind: "refused", code: "lock_delayed" };
  throw new Error(`the library says "not free" after ${outcome?.kind ?? "no answer"}`);
}

export function releasedAs(result: ReleaseResult): CallResult {
  switch (result) {
    case "released":
      return { kind: "released", how: "released" };
    case "already-released":
      return { kind: "released", how: "alreadyReleased" };
    case "already-lost":
      return { kind: "released", how: "alreadyLost" };
    default:
      return result satisfies never;
  }
}

export function inspectedAs(view: LockView | null): CallResult {
  if (view === null) return { kind: "inspected", holders: [] };
  // Of very many holders only the first are shown.
  if (view.holders.length < view.holderCount) return { kind: "unknown", code: "too_many_holders" };
  return { kind: "inspected", holders: view.holders.map(({ token, slot }) => ({ token, slot })) };
}
