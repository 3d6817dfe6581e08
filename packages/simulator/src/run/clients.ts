/** The clients of a run: those that were there from the start, those that took a dead one's place, and what they share. */
import { CallNumbers, drawWorkload, RawClient, Resource, SimulatedClient } from "../clients/index.js";
import type { OpenCall, RunningClient, SimulatedClientParts } from "../clients/index.js";
import { ToldChanges } from "../invariants/index.js";
import { createClientTransport } from "../network/index.js";
import { SimulatedProcess } from "../process.js";
import { streamOf } from "../random.js";
import type { World } from "./world.js";

export class Clients {
  readonly #world: World;
  readonly #numbers = new CallNumbers();
  readonly #resource: Resource;
  readonly #live = new Map<string, { readonly client: RunningClient; readonly process: SimulatedProcess }>();
  readonly #names: readonly string[];
  #started = 0;
  #isDraining = false;

  constructor(world: World) {
    this.#world = world;
    const { electionTimeoutMs } = world.plan.timing;
    this.#names = Array.from({ length: world.plan.locks }, (_, at) => `lock ${at + 1}`);
    this.#resource = new Resource(
      { wayMsMax: 2, lateChance: 0.03, lateMsMax: Math.max(2 * world.plan.ttlMs, 10 * electionTimeoutMs) },
      {
        scheduler: world.scheduler,
        random: world.stream("resource"),
        sink: world.recorder,
        counts: world.counts,
      },
    );
  }

  get liveIds(): readonly string[] {
    return [...this.#live.keys()];
  }

  /** Of those with the library: who has a lock that isn't given back. */
  get holderIds(): readonly string[] {
    return [...this.#live].flatMap(([id, { client }]) => (client.isHolding ? [id] : []));
  }

  get started(): number {
    return this.#started;
  }

  /** The clocks of those who live. */
  get strayedMs(): number {
    let strayedMs = 0;
    for (const { process } of this.#live.values()) strayedMs += process.strayedMs;
    return strayedMs;
  }

  process(id: string): SimulatedProcess | null {
    return this.#live.get(id)?.process ?? null;
  }

  add(): string {
    const { plan } = this.#world;
    const { id, process } = this.#newProcess("c");
    const random = streamOf(plan.seed, `client ${id}`);
    const { ttlMs, actionsMax, unitMs, longHolds } = plan;
    const workload = drawWorkload(random, { names: this.#names, ttlMs, actionsMax, unitMs, longHolds });
    const client: RunningClient = new SimulatedClient(
      { id, endpoints: this.#endpoints(), connectTimeoutMs: 10_000, workers: random.between(1, 4), workload },
      {
        ...this.#partsFor(id, process),
        streamFor: (name) => streamOf(plan.seed, `client ${id} ${name}`),
      },
    );
    return this.#begin(client, process);
  }

  addRaw(): string {
    const { plan } = this.#world;
    const { id, process } = this.#newProcess("r");
    const random = streamOf(plan.seed, `client ${id}`);
    const client: RunningClient = new RawClient(
      {
        id,
        // Nobody tells it of new nodes.
        endpoints: this.#world.nodes.map(({ id }) => `${id}:7101`),
        names: this.#names,
        semaphores: [{ name: "places", slots: random.between(1, 4) }],
        ttlMs: plan.ttlMs,
        pauseMsMax: random.logUniform(0.2, 8) * plan.unitMs,
      },
      {
        ...this.#partsFor(id, process),
        random,
      },
    );
    return this.#begin(client, process);
  }

  /** With its machine nobody hears of its end. */
  kill(id: string, kind: "process" | "machine" = "process"): void {
    const live = this.#live.get(id);
    if (live === undefined) return;
    this.#live.delete(id);
    live.client.kill();
    this.#world.network.place(id).onProcessKilled(live.process, kind);
  }

  drain(id: string): void {
    this.#live.get(id)?.client.beginDrain();
  }

  drainAll(): void {
    this.#isDraining = true;
    for (const { client } of this.#live.values()) client.beginDrain();
  }

  get areIdle(): boolean {
    for (const { client } of this.#live.values()) if (!client.isIdle) return false;
    return true;
  }

  openCalls(): readonly OpenCall[] {
    return [...this.#live.values()].flatMap(({ client }) => client.openCalls());
  }

  describe(): string[] {
    return [...this.#live.values()].map(({ client }) => client.describe());
  }

  /** What clients of either kind need of the world. */
  #partsFor(id: string, process: SimulatedProcess): Omit<SimulatedClientParts, "streamFor"> {
    const { plan, scheduler, recorder, network, counts } = this.#world;
    const bufferedBytesMax = plan.limits.clientBufferedBytesMax;
    return {
      process,
      scheduler,
      transport: createClientTransport(network, { place: id, process, bufferedBytesMax, tap: null }),
      sink: recorder,
      numbers: this.#numbers,
      resource: this.#resource,
      counts,
      judgeWatch: (name, isPrefix) => {
        const told = new ToldChanges(this.#world.watch.changes, name, isPrefix);
        return (event) => told.judge(event);
      },
      sequencers: this.#world.watch.sequencers,
      onDefect: (error) => this.#world.fail(error),
    };
  }

  #begin(client: RunningClient, process: SimulatedProcess): string {
    this.#live.set(client.id, { client, process });
    client.start();
    if (this.#isDraining) client.beginDrain();
    return client.id;
  }

  #endpoints(): string[] {
    return this.#world.members.configuration.voters.map(({ client }) => client);
  }

  #newProcess(prefix: string): { id: string; process: SimulatedProcess } {
    const { plan, scheduler, recorder } = this.#world;
    this.#started += 1;
    const id = `${prefix}${this.#started}`;
    const random = streamOf(plan.seed, `process ${id}`);
    const rate = 1 + (2 * random.fraction() - 1) * plan.world.driftMax;
    recorder.emit({ kind: "clockRate", process: id, rate });
    return {
      id,
      process: new SimulatedProcess(
        { id, rate, busy: plan.world.busy },
        { scheduler, random, onEvent: () => undefined },
      ),
    };
  }
}
