/** The closed sets of words that several codecs write as numbers. A word's number never changes. */
import type { LossReason, Mode } from "@holdfast/lock";
import { wordsOf } from "./fields.js";
import type { Words } from "./fields.js";

export const modes: Words<Mode> = wordsOf<Mode>({ exclusive: 1, shared: 2, slot: 3 });
export const lossReasons: Words<LossReason> = wordsOf<LossReason>({
  expired: 1,
  forced: 2,
  max_hold: 3,
  closed: 4,
  restored: 5,
});
