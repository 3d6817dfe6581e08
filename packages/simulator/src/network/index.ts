/** What the rest of the simulator needs of the network. */
export { createClientDoor, createClientTransport } from "./client-transport.js";
export type { ClientDoorEvents, ClientTransportOptions } from "./client-transport.js";
export type { Tap, TappedFrame } from "./connection.js";
export type { NetworkCounts } from "./counts.js";
export type { Door } from "./door.js";
export { Network, usualNetwork } from "./network.js";
export type { NetworkOptions, NetworkParts } from "./network.js";
export { createPeerTransport } from "./peer-transport.js";
export type { Place } from "./place.js";
export type { Undo } from "./way.js";
