/** What both entries do: options with their defaults, and a client that has reached its cluster. */
import { ClientMetrics } from "./client-metrics.js";
import { channelsBy } from "./diagnostics.js";
import type { Holdfast } from "./holdfast.js";
import { LockClient } from "./lock-client.js";
import { guardedLogger } from "./logger.js";
import { OpenTelemetryRecorder, Spans } from "./open-telemetry.js";
import { checkConnectOptions } from "./options.js";
import type { ConnectOptions } from "./options.js";
import type { Platform } from "./platform.js";
import type { ClientPorts } from "./ports.js";

export async function start(options: ConnectOptions, ports: ClientPorts, platform: Platform): Promise<Holdfast> {
  const checked = checkConnectOptions(options, platform);
  const { metrics = new ClientMetrics(), meter, tracer } = options;
  const instruments = {
    metrics,
    channels: channelsBy(platform.channel),
    recorder: meter === undefined ? null : new OpenTelemetryRecorder(meter),
    spans: tracer === undefined ? null : new Spans(tracer),
  };
  const logger = guardedLogger(options.logger);
  const client = new LockClient(checked, ports, { logger, instruments, context: platform.context });
  await client.start();
  return client;
}
