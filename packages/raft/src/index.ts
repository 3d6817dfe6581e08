export { InvariantError } from "./assert.js";
export { checkInvariants } from "./invariants.js";
export { comparePositions } from "./position.js";
export { quorumValueFor, tallyBallots, voterSetsFor } from "./quorum.js";
export type { Tally, VoterSets } from "./quorum.js";
export { Raft } from "./raft.js";
export * from "./types.js";
