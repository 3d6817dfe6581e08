/** Metrics that nobody reads, but for what a node applies and whom it turns away. */
import type { Effect } from "@holdfast/lock";
import type { Metrics } from "@holdfast/server/parts";

export function silentMetrics(
  onEffects: (effects: readonly Effect[]) => void,
  onRejected: Metrics["noteRejected"],
  onSynced: Metrics["observeFsync"],
): Metrics {
  const ignore = (): void => undefined;
  return {
    attach: ignore,
    attachTransport: ignore,
    observeFsync: onSynced,
    observeAppend: ignore,
    noteEffects: onEffects,
    noteRole: ignore,
    noteRejected: onRejected,
    render: () => Promise.resolve({ contentType: "text/plain", text: "" }),
  };
}
