/** Metrics that nobody reads, but for what a node applies. */
import type { Effect } from "@holdfast/lock";
import type { Metrics } from "@holdfast/server/parts";

export function silentMetrics(onEffects: (effects: readonly Effect[]) => void): Metrics {
  const ignore = (): void => undefined;
  return {
    attach: ignore,
    attachTransport: ignore,
    observeFsync: ignore,
    observeAppend: ignore,
    noteEffects: onEffects,
    noteRole: ignore,
    noteRejected: ignore,
    render: () => Promise.resolve({ contentType: "text/plain", text: "" }),
  };
}
