/** Parts of a node that the simulator runs as they are, in a world of its own. No public surface: they change without notice. */
export { ClientSocket } from "./client-socket.js";
export type { ClientSocketOptions, ClientSocketOwner } from "./client-socket.js";
export { FlushQueue } from "./flush-queue.js";
export type { Flushable } from "./flush-queue.js";
export { configurationIn, durableFactsOf, firstBase } from "./formation.js";
export { createPeerLinks } from "./peer-links.js";
export type * from "./peer-links.js";
export { nodeHostOptionsFor } from "./node-options.js";
export { laneFor, lanes } from "./peer-lanes.js";
export type { Lane } from "./peer-lanes.js";
export { PeerMemory } from "./peer-memory.js";
export { loadMachine } from "./stored-machine.js";
export type * from "./transport.js";
