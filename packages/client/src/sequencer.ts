/** What the cluster says of a sequencer, in the caller's terms. */
import type { Mode, Token } from "@holdfast/lock";
import { parseSequencer, WireError } from "@holdfast/wire";
import type { QueryResult, Sequencer, SequencerVerdict } from "@holdfast/wire";

/** What a sequencer says of its holding. */
export interface SequencerClaim {
  /** The lock's name; for a slot of a semaphore `name#slot`. */
  readonly resource: string;
  readonly name: string;
  readonly mode: Mode;
  readonly slot: number | null;
  readonly token: Token;
}

/**
 * | reason      | the sequencer                                                                                |
 * |-------------|----------------------------------------------------------------------------------------------|
 * | over        | was signed by this cluster, and that holding is over                                         |
 * | forged      | bears a signature that its key never made of it                                              |
 * | unknown_key | is of a key that isn't among this cluster's: another cluster's, or one replaced too long ago |
 * | malformed   | is no text that a cluster makes                                                              |
 */
export interface SequencerCheck {
  /** That holding goes on, as of a moment between question and answer. A shared one: somebody of the same generation holds the lock. */
  readonly isCurrent: boolean;
  /** Why not; null when it is. */
  readonly reason: Exclude<SequencerVerdict, "current"> | null;
  /** What it says; null unless this cluster signed it. */
  readonly claim: SequencerClaim | null;
  /** The token of who holds the same now, or the same slot; null when nobody does, and when `claim` is. */
  readonly currentToken: Token | null;
}

/** Null: no cluster made it, so none needs to be asked. */
export function readSequencer(text: string): Sequencer | null {
  try {
    return parseSequencer(text);
  } catch (error) {
    if (error instanceof WireError) return null;
    throw error;
  }
}

export const malformed: SequencerCheck = { isCurrent: false, reason: "malformed", claim: null, currentToken: null };

export function checkOf(
  { name, mode, slot, token }: Sequencer,
  answer: Extract<QueryResult, { readonly kind: "check" }>,
): SequencerCheck {
  const { verdict, token: currentToken } = answer;
  const isCurrent = verdict === "current";
  const isSigned = isCurrent || verdict === "over";
  const resource = slot === null ? name : `${name}#${slot}`;
  return {
    isCurrent,
    reason: isCurrent ? null : verdict,
    claim: isSigned ? { resource, name, mode, slot, token } : null,
    currentToken,
  };
}
