/** The configuration of a run's cluster. Its numbers may be smaller than a file may have them: tiny buffers show what large ones hide. */
import type { Config } from "@holdfast/server";
import type { Plan } from "./plan.js";

export function firstIdsOf(plan: Plan): string[] {
  return Array.from({ length: plan.nodes }, (_, at) => `n${at + 1}`);
}

/** Machines beyond the first configuration. */
export function spareIdsOf(plan: Plan): string[] {
  return Array.from({ length: plan.spares }, (_, at) => `n${plan.nodes + at + 1}`);
}

/** `ids`: of the nodes in its file; a node that joins has itself alone in it. */
export function configFor(plan: Plan, ids: readonly string[]): Config {
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
      httpRequestsMax: 4_096,
      clientBufferedBytesSlow: plan.limits.clientBufferedBytesMax / 4,
    },
    logLevel: "info",
    origins: [],
  };
}
