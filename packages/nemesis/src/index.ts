/** The interfaces between the parts: networks, faults of the machine, and what a run leaves behind. */
export * from "./network/network.js";
export * from "./machine/machine.js";
export * from "./run/summary.js";
