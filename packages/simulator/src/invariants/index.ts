export type { Bounds } from "./bounds.js";
export { ClusterWatch } from "./cluster-watch.js";
export type { WatchEvents, WatchOptions } from "./cluster-watch.js";
export { InvariantError } from "./invariant-error.js";
export type { RuleName } from "./invariant-error.js";
export { SequencerBook } from "./sequencers.js";
export { ChangeBook, ToldChanges } from "./told-changes.js";
export type { DurableView, NodeClock } from "./watched-node.js";
