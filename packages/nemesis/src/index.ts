/** The interfaces that networks and faults of the machine implement. */
export * from "./network/network.js";
export * from "./machine/machine.js";
