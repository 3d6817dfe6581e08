/** The scopes that `npm run explore` goes through: each with other faults. docs/testing.md says which of them are gone through to their end. */
import type { Scope } from "./scope.js";

const small: Scope = {
  nodes: 3,
  termMax: 1,
  entriesMax: 1,
  timeoutsMax: Number.POSITIVE_INFINITY,
  pendingMax: 2,
  crashesMax: 0,
  resetsMax: 0,
  joinsMax: 0,
  isDiskLate: false,
  areHeartbeatsPrompt: true,
  isLed: false,
};

export const scopes: Readonly<Record<string, Scope>> = {
  election: small,
  "election-disk": { ...small, timeoutsMax: 1, isDiskLate: true },
  "election-crash": { ...small, timeoutsMax: 1, crashesMax: 1, isDiskLate: true },
  "election-2-crash": { ...small, timeoutsMax: 2, crashesMax: 1 },
  log: { ...small, timeoutsMax: 1, entriesMax: 3 },
  "log-2-terms": { ...small, termMax: 2, entriesMax: 2, timeoutsMax: 2 },
  "log-2-terms-any": { ...small, termMax: 2, entriesMax: 3 },
  led: { ...small, isLed: true, entriesMax: 3, timeoutsMax: 0 },
  "led-disk": { ...small, isLed: true, entriesMax: 3, timeoutsMax: 0, isDiskLate: true },
  "led-2-terms": { ...small, isLed: true, termMax: 2, entriesMax: 3, timeoutsMax: 1 },
  "led-2-terms-any": { ...small, isLed: true, termMax: 2, entriesMax: 3 },
  "led-2-terms-crash": { ...small, isLed: true, termMax: 2, entriesMax: 3, timeoutsMax: 1, crashesMax: 1 },
  full: {
    ...small,
    termMax: 2,
    entriesMax: 3,
    timeoutsMax: 3,
    crashesMax: 1,
    resetsMax: 1,
    joinsMax: 1,
    isDiskLate: true,
  },
};
