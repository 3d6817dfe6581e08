/** Node's part of what isn't a port: environment, names, diagnostics channels and the context of calls. */
import { channel } from "node:diagnostics_channel";
import { hostname } from "node:os";
import { nodeContext } from "./current-lock.js";
import type { Platform } from "./platform.js";

export function nodePlatform(): Platform {
  return {
    endpoints: process.env["HOLDFAST_ENDPOINTS"] ?? "",
    info: `${hostname()}:${process.pid}`,
    context: nodeContext,
    channel,
  };
}
