import type { EventOf, HistoryEvent } from "@holdfast/checker";
import { LaneBuilder } from "./lane.js";
import type { Lane } from "./lane.js";

interface Hold {
  readonly client: string;
  /** "a" or "a, b". */
  readonly names: string;
  readonly tokens: string;
  readonly hue: number;
}

/** A lane for each worker: what it held by its library's word, with the tokens, and what its resource refused. */
export class ClientLanes {
  readonly #workers: ReadonlySet<string>;
  readonly #lanes: Map<string, LaneBuilder>;
  /** By call, from the acquire to the end of the hold. */
  readonly #acquires = new Map<number, EventOf<"call">>();
  readonly #holds = new Map<number, Hold>();
  readonly #hues = new Map<string, number>();

  constructor(workers: readonly string[]) {
    this.#workers = new Set(workers);
    this.#lanes = new Map(workers.map((name) => [name, new LaneBuilder(name)]));
  }

  onEvent(event: HistoryEvent): void {
    switch (event.kind) {
      case "call":
        return this.#onCall(event);
      case "return":
        return this.#onReturn(event);
      case "state":
        return this.#onState(event);
      case "guardWrite":
        if (event.accepted !== false) return;
        return this.#lane(event.client).mark(
          "refused",
          event.at,
          `${event.resource} refuses ${event.client}'s write with token ${event.token}`,
        );
      case "paused":
        return this.#known(event.process)?.pause(event.process, event.at);
      case "resumed":
        return this.#known(event.process)?.resume(event.at);
      case "clockRate":
        return this.#known(event.process)?.mark("rate", event.at, `its clocks run ${event.rate} times as fast`);
      case "crashed":
        return this.#onCrash(event.process, event.at);
      default:
        return;
    }
  }

  finish(to: number): readonly Lane[] {
    return [...this.#lanes.values()].map((lane) => lane.finish(to));
  }

  #onCall(event: EventOf<"call">): void {
    if (event.op.kind === "acquire") this.#acquires.set(event.call, event);
    if (event.op.kind === "release") this.#end(event.op.of, event.at);
  }

  #onReturn({ call, at, result }: EventOf<"return">): void {
    const acquire = this.#acquires.get(call);
    this.#acquires.delete(call);
    if (acquire === undefined || result.kind !== "acquired") return;
    const names = result.grants.map(({ name, slot }) => (slot === null ? name : `${name}#${slot}`)).join(", ");
    const tokens = [...new Set(result.grants.map(({ token }) => token))].join(", ");
    const hue = this.#hues.get(names) ?? this.#hues.size;
    this.#hues.set(names, hue);
    this.#holds.set(call, { client: acquire.client, names, tokens, hue });
    this.#show(call, at, "hold");
  }

  #onState({ call, at, state, reason }: EventOf<"state">): void {
    const hold = this.#holds.get(call);
    if (hold === undefined) return;
    if (state === "jeopardy") return this.#show(call, at, "jeopardy");
    if (state === "held") return this.#show(call, at, "hold");
    this.#end(call, at);
    if (state !== "lost") return;
    const why = reason === null ? "" : ` (${reason})`;
    this.#lane(hold.client).mark("lost", at, `${hold.client} loses ${hold.names}, token ${hold.tokens}${why}`);
  }

  #show(call: number, at: number, style: "hold" | "jeopardy"): void {
    const hold = this.#holds.get(call);
    if (hold === undefined) return;
    const words = style === "hold" ? "holds" : "is not sure to hold";
    const title = `${hold.client} ${words} ${hold.names}, token ${hold.tokens}`;
    this.#lane(hold.client).begin(`${call}`, { from: at, style, label: hold.tokens, title, hue: hold.hue });
  }

  #end(call: number, at: number): void {
    const hold = this.#holds.get(call);
    if (hold === undefined) return;
    this.#holds.delete(call);
    this.#lane(hold.client).end(`${call}`, at);
  }

  /** Its holds are nobody's from now on, whatever the cluster thinks. */
  #onCrash(client: string, at: number): void {
    const lane = this.#known(client);
    if (lane === undefined) return;
    for (const [call, hold] of this.#holds) if (hold.client === client) this.#end(call, at);
    lane.resume(at);
    lane.mark("killed", at, `${client} ends`);
  }

  /** Not made for a process that has never called: it may be a node. */
  #known(process: string): LaneBuilder | undefined {
    return this.#lanes.get(this.#laneName(process));
  }

  #lane(client: string): LaneBuilder {
    const name = this.#laneName(client);
    const lane = this.#lanes.get(name) ?? new LaneBuilder(name);
    this.#lanes.set(name, lane);
    return lane;
  }

  /** w1, w1.2 and w1.3 are lives of one worker. */
  #laneName(client: string): string {
    const worker = client.replace(/\.\d+$/, "");
    return this.#workers.has(worker) ? worker : client;
  }
}
