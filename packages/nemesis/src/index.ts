/** The interface that both networks implement. */
export * from "./network/network.js";
