/** The entry: options with their defaults, production ports, and a client that has reached its cluster. */
import { hostname } from "node:os";
import type { Holdfast } from "./holdfast.js";
import { LockClient } from "./lock-client.js";
import { guardedLogger } from "./logger.js";
import { createNodePorts } from "./node-ports.js";
import { checkConnectOptions } from "./options.js";
import type { ConnectOptions } from "./options.js";
import type { ClientPorts } from "./ports.js";

/**
 * Connects to a cluster. Resolves when one of its nodes has answered; sessions are opened at the first acquire. Rejects with
 * unreachable after connectTimeoutMs, with incompatible or unauthorized when every node refuses, and with invalid_argument.
 */
export function connect(options: ConnectOptions = {}): Promise<Holdfast> {
  return connectWith(options, createNodePorts());
}

/** As connect, with another clock, chance and network: for simulations and tests. */
export async function connectWith(options: ConnectOptions, ports: ClientPorts): Promise<Holdfast> {
  const defaults = { endpoints: process.env["HOLDFAST_ENDPOINTS"] ?? "", info: `${hostname()}:${process.pid}` };
  const checked = checkConnectOptions(options, defaults);
  const client = new LockClient(checked, ports, guardedLogger(options.logger));
  await client.start();
  return client;
}
