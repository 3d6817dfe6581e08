/** What some run must have met: over 10,000 seeds none of these may be missing, or the runs are too tame. */
import { faultNames } from "./run/fault-kinds.js";

const others: readonly string[] = [];

export const marks: readonly string[] = [...faultNames.map((name) => `bit: ${name}`), ...others];
