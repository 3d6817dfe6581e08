/** What the guards of all stores share, and the guard for a store that has none. One entry per store: `@holdfast/fence/postgres`. */
export {
  FenceError,
  IncompatibleResourceError,
  InvalidArgumentError,
  KeysUnavailableError,
  ResourceMissingError,
  SequencerError,
  StaleTokenError,
  UnknownOutcomeError,
} from "./errors.js";
export type { FenceErrorCode, SequencerProblem } from "./errors.js";
export { fenceOf } from "./fence.js";
export type { Fence, FenceSource } from "./fence.js";
export { Guard } from "./guard.js";
export type { FenceRegister, FencedRecord, GuardOptions, VersionedRecord } from "./guard.js";
export { openTelemetryFenceMetrics, prometheusFenceMetrics } from "./metrics.js";
export type { FenceMetrics, OpenTelemetryCounter, OpenTelemetryMeter, PrometheusFenceMetrics } from "./metrics.js";
export type { ReportingOptions, StaleReport } from "./reporting.js";
export { verifySequencer } from "./sequencer.js";
export type { PublicKey, VerifiedSequencer } from "./sequencer.js";
export { sequencerKeys } from "./sequencer-keys.js";
export type { SequencerKeys, SequencerKeysOptions } from "./sequencer-keys.js";
