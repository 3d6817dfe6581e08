export * from "./client-messages.js";
export * from "./peer-messages.js";
export * from "./refusals.js";
