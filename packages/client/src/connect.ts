/** Node's entry into the client. */
import type { Holdfast } from "./holdfast.js";
import { nodePlatform } from "./node-platform.js";
import { createNodePorts } from "./node-ports.js";
import type { ConnectOptions } from "./options.js";
import type { ClientPorts } from "./ports.js";
import { start } from "./start.js";

/**
 * Connects to a cluster. Resolves when one of its nodes has answered; sessions are opened at the first acquire. Rejects with
 * unreachable after connectTimeoutMs, with incompatible or unauthorized when every node refuses, and with invalid_argument.
 */
export function connect(options: ConnectOptions = {}): Promise<Holdfast> {
  return connectWith(options, createNodePorts());
}

/** As connect, with another clock, chance and network: for simulations and tests. */
export function connectWith(options: ConnectOptions, ports: ClientPorts): Promise<Holdfast> {
  return start(options, ports, nodePlatform());
}
