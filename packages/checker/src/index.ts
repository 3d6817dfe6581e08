/** Judges histories of the lock service. Imports nothing of what it judges. */
export { check } from "./check.js";
export type { CheckOptions } from "./check.js";
export { HistoryError } from "./history-error.js";
export { historyVersion } from "./history.js";
export type * from "./history.js";
export type * from "./log-words.js";
export { encodeEvent, encodeHeader, encodeHistory, parseEvent, parseHeader, parseHistory } from "./ndjson.js";
export { rules, ruleTexts } from "./verdict.js";
export type { Counts, Rule, Unknowns, Verdict, Violation } from "./verdict.js";
