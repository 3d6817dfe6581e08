/** The closed sets of words that several codecs write as numbers. A word's number never changes. */
import type { LossReason, Mode } from "@holdfast/lock";
import type { ChangeKind, MemberRole, SequencerVerdict } from "./client-messages.js";
import { wordsOf } from "./fields.js";
import type { Words } from "./fields.js";
import type { ChangeRefusalReason } from "./refusals.js";

export const changeKinds: Words<ChangeKind> = wordsOf<ChangeKind>({
  granted: 1,
  released: 2,
  lost: 3,
  delayEnded: 4,
  info: 5,
});
export const modes: Words<Mode> = wordsOf<Mode>({ exclusive: 1, shared: 2, slot: 3 });
export const lossReasons: Words<LossReason> = wordsOf<LossReason>({
  expired: 1,
  forced: 2,
  max_hold: 3,
  closed: 4,
  restored: 5,
});
export const memberRoles: Words<MemberRole> = wordsOf<MemberRole>({ voter: 1, outgoing: 2, learner: 3 });
export const verdicts: Words<SequencerVerdict> = wordsOf<SequencerVerdict>({
  current: 1,
  over: 2,
  forged: 3,
  unknown_key: 4,
  malformed: 5,
});
export const changeRefusals: Words<ChangeRefusalReason> = wordsOf<ChangeRefusalReason>({
  transfer_running: 1,
  not_ready: 2,
  change_in_progress: 3,
  empty_change: 4,
  named_twice: 5,
  removed_id: 6,
  already_member: 7,
  instance_differs: 8,
  instance_taken: 9,
  address_taken: 10,
  invalid_member: 11,
  unknown_member: 12,
  not_caught_up: 13,
  no_voters: 14,
  too_many_voters: 15,
  too_many_members: 16,
  too_many_removed: 17,
  would_lose_quorum: 18,
});
