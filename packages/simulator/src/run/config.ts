/** The configuration of a run's cluster. Its numbers may be smaller than a file may have them: tiny buffers show what large ones hide. */
import type { Config } from "@holdfast/server";
import type { Plan } from "./plan.js";

export function configFor(plan: Plan): Config {
  const ids = Array.from({ length: plan.nodes }, (_, at) => `n${at + 1}`);
  return {
    cluster: "simulated",
    nodes: ids.map((id) => ({
      id,
      peer: `${id}:7201`,
      client: `${id}:7101`,
      listen: { peer: { host: id, port: 7201 }, client: { host: id, port: 7101 } },
    })),
    timing: { ...plan.timing, ttlMsMin: 650, ttlMsMax: 3_600_000 },
    limits: {
      ...plan.limits,
      snapshotBytes: 1 << 26,
      clientConnectionsMax: 10_000,
      clientBufferedBytesSlow: plan.limits.clientBufferedBytesMax / 4,
    },
    logLevel: "info",
    origins: [],
  };
}
