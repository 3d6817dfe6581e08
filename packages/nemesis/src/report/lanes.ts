/** From the events of a run to the lanes of its picture. */
import type { HistoryEvent } from "@holdfast/checker";
import { ClientLanes } from "./client-lanes.js";
import type { Lane } from "./lane.js";
import { NodeLanes } from "./node-lanes.js";

export interface LaneNames {
  readonly nodes: readonly string[];
  /** Lives of one worker share its lane; clients that are no worker's (the probe) get lanes below. */
  readonly workers: readonly string[];
}

/** `to`: where the picture ends; what lasts longer is cut there. */
export function lanesOf(names: LaneNames, events: readonly HistoryEvent[], to: number): readonly Lane[] {
  const nodes = new NodeLanes(names.nodes);
  const clients = new ClientLanes(names.workers);
  for (const event of events) {
    if (event.at > to) break;
    nodes.onEvent(event);
    clients.onEvent(event);
  }
  return [...nodes.finish(to), ...clients.finish(to)];
}
