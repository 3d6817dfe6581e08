/** The package's entry in Node. */
export * from "./surface.js";
export { connect, connectWith } from "./connect.js";
export { currentFence, currentLock } from "./current-lock.js";
export { createNodePorts } from "./node-ports.js";
