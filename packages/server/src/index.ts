export * from "./ports.js";
export { NodeHost } from "./node-host.js";
export type * from "./node-host-types.js";
