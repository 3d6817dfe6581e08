/** What a message of the right shape must still satisfy before the core looks at it. One that doesn't is passed over, as if lost. */
import { assertNever } from "./assert.js";
import { numberMax } from "./position.js";
import type { Entry, LogBase, Message, Position, Term } from "./types.js";

export function isWellFormed(message: Message): boolean {
  if (!isCount(message.term)) return false;
  switch (message.kind) {
    case "preVote":
    case "vote":
      return isPositionWithin(message.last, message.term);
    case "append":
      return (
        isPositionWithin(message.previous, message.term) &&
        isCount(message.commitIndex) &&
        areConsecutive(message.entries, message.previous, message.term)
      );
    case "appendAccepted":
      return isCount(message.matchIndex);
    case "appendRejected":
      return isCount(message.rejected) && isPositionWithin(message.hint, message.term);
    case "heartbeat":
      return isCount(message.commitIndex) && isCount(message.round);
    case "heartbeatAnswer":
      return isCount(message.round);
    case "snapshotChunk":
      return isCount(message.chunk) && isBaseWithin(message.base, message.term);
    case "snapshotAnswer":
      return isCount(message.snapshotIndex) && isCount(message.next);
    case "preVoteAnswer":
    case "voteAnswer":
    case "timeoutNow":
      return true;
    default:
      return assertNever(message);
  }
}

function isCount(value: number): boolean {
  return Number.isInteger(value) && value >= 0 && value <= numberMax;
}

/** No log has an entry of a later term than its owner's. */
function isPositionWithin(position: Position, term: Term): boolean {
  return isCount(position.index) && isCount(position.term) && position.term <= term;
}

function isBaseWithin(base: LogBase, term: Term): boolean {
  return isPositionWithin(base.position, term) && base.configuration.voters.length > 0;
}

function areConsecutive(entries: readonly Entry[], previous: Position, term: Term): boolean {
  let { index, term: lastTerm }: { index: number; term: number } = previous;
  for (const entry of entries) {
    index += 1;
    if (entry.index !== index || entry.term < lastTerm || entry.term > term || !Number.isInteger(entry.term))
      return false;
    lastTerm = entry.term;
  }
  return index <= numberMax;
}
