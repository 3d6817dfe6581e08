/** The package's entry in a browser (condition `browser`): the same client on native WebSockets, without a module of Node. */
import { browserPlatform } from "./browser-platform.js";
import { createBrowserPorts } from "./browser-ports.js";
import type { Holdfast } from "./holdfast.js";
import type { ConnectOptions } from "./options.js";
import type { ClientPorts } from "./ports.js";
import { start } from "./start.js";

export * from "./surface.js";
export { currentFence, currentLock } from "./browser-platform.js";

/** As in Node; `endpoints` has no default. */
export function connect(options: ConnectOptions = {}): Promise<Holdfast> {
  return connectWith(options, createBrowserPorts());
}

/** As connect, with another clock, chance and network: for tests. */
export function connectWith(options: ConnectOptions, ports: ClientPorts): Promise<Holdfast> {
  return start(options, ports, browserPlatform());
}
