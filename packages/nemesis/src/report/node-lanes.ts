import type { HistoryEvent } from "@holdfast/checker";
import { LaneBuilder } from "./lane.js";
import type { Lane } from "./lane.js";

/** A lane for each node: when it was up, led, served and stood still. */
export class NodeLanes {
  readonly #lanes: ReadonlyMap<string, LaneBuilder>;

  constructor(nodes: readonly string[]) {
    this.#lanes = new Map(nodes.map((name) => [name, new LaneBuilder(name)]));
  }

  onEvent(event: HistoryEvent): void {
    switch (event.kind) {
      case "started":
        return this.#lanes
          .get(event.node)
          ?.begin("up", { from: event.at, style: "up", label: "", title: `${event.node} is up`, hue: 0 });
      case "leader":
      case "serving":
        return this.#lead(event.node, event.term, event.at, event.kind === "serving");
      case "deposed":
        return this.#lanes.get(event.node)?.end("lead", event.at);
      case "crashed":
        return this.#crash(event.process, event.at);
      case "paused":
        return this.#lanes.get(event.process)?.pause(event.process, event.at);
      case "resumed":
        return this.#lanes.get(event.process)?.resume(event.at);
      case "clockRate":
        return this.#lanes.get(event.process)?.mark("rate", event.at, `its clocks run ${event.rate} times as fast`);
      default:
        return;
    }
  }

  finish(to: number): readonly Lane[] {
    return [...this.#lanes.values()].map((lane) => lane.finish(to));
  }

  #lead(node: string, term: number, at: number, serves: boolean): void {
    const title = `${node} ${serves ? "serves" : "is elected"} in term ${term}`;
    const label = serves ? `term ${term}` : "";
    this.#lanes.get(node)?.begin("lead", { from: at, style: serves ? "serves" : "leads", label, title, hue: 0 });
  }

  #crash(process: string, at: number): void {
    const lane = this.#lanes.get(process);
    if (lane === undefined) return;
    lane.endAll(at);
    lane.mark("killed", at, `${process} ends`);
  }
}
