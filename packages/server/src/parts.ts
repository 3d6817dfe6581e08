/** Parts of a node that the simulator runs as they are, in a world of its own. No public surface: they change without notice. */
export { configurationIn, durableFactsOf, firstBase } from "./formation.js";
export type { DurableFacts } from "./peer-links.js";
export { nodeHostOptionsFor } from "./node-options.js";
export { laneFor, lanes } from "./peer-lanes.js";
export type { Lane } from "./peer-lanes.js";
export { PeerMemory } from "./peer-memory.js";
export { loadMachine } from "./stored-machine.js";
