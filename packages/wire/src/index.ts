export * from "./client-messages.js";
export * from "./peer-messages.js";
export * from "./refusals.js";
export { limits } from "./limits.js";
export { WireError, UnknownCommandError } from "./wire-error.js";
export type { WireErrorCode } from "./wire-error.js";
export { crc32c } from "./crc32c.js";
export { entryCodec } from "./entry-codec.js";
export { acquireIn, decodeCommand, encodeCommand } from "./command-codec.js";
export { checkClientCommand, checkName, checkNames } from "./command-checks.js";
export { integerProblem, textProblem } from "./problems.js";
export { checkClientMessage, decodeClientFrame, encodeClientFrame, encodeClientFrames } from "./client-codec.js";
export { decodeServerFrame, encodeServerFrame, encodeServerFrames } from "./server-codec.js";
export { decodePeerFrame, encodePeerFrame, encodeRaftFrames } from "./peer-codec.js";
export {
  decodeBase,
  decodeEntries,
  decodeHardState,
  decodeSnapshotPiece,
  encodeBase,
  encodeEntries,
  encodeHardState,
  encodeSnapshotPiece,
} from "./stored-codec.js";
export { isTraceparent } from "./traceparent.js";
export { parseSequencer, sealSequencer, sequencerToSign } from "./sequencer.js";
export type { Sequencer, SequencerClaim } from "./sequencer.js";
