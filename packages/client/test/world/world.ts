/** A client in a world of virtual time, network and nodes. */
import type { Command } from "@holdfast/lock";
import { decodeCommand } from "@holdfast/wire";
import type { ClientMessage } from "@holdfast/wire";
import { connectWith } from "../../src/connect.js";
import type { Holdfast } from "../../src/holdfast.js";
import type { ConnectOptions } from "../../src/options.js";
import type { ClientPorts, Random } from "../../src/ports.js";
import { FakeCluster } from "./fake-cluster.js";
import { VirtualClock } from "./virtual-clock.js";
import type { ClockView } from "./virtual-clock.js";
import { VirtualNetwork } from "./virtual-network.js";

export class World {
  readonly clock: VirtualClock = new VirtualClock();
  readonly network: VirtualNetwork = new VirtualNetwork(this.clock);
  readonly cluster: FakeCluster = new FakeCluster(this.clock, ["node1:7000", "node2:7000", "node3:7000"]);

  /** The clients' timers. */
  readonly timers: ClockView = this.clock.view();

  constructor() {
    for (const node of this.cluster.nodes) this.network.listen(node.endpoint, node);
  }

  ports(seed = 1): ClientPorts {
    return { clock: this.timers, random: seededRandom(seed), transport: this.network };
  }

  async connect(options: ConnectOptions = {}, seed = 1): Promise<Holdfast> {
    const connecting = connectWith(
      { endpoints: this.cluster.endpoints, info: `client ${seed}`, ...options },
      this.ports(seed),
    );
    return await this.within(20_000, connecting);
  }

  /** Lets time pass until the promise settles; throws when it takes longer than `ms`. */
  async within<T>(ms: number, promise: Promise<T>): Promise<T> {
    let isSettled = false;
    const mark = (): void => {
      isSettled = true;
    };
    promise.then(mark, mark);
    const endMs = this.clock.monotonicMs() + ms;
    await this.clock.advance(0);
    while (!isSettled) {
      if (this.clock.monotonicMs() >= endMs) throw new Error(`not settled within ${ms} ms`);
      await this.clock.step(endMs);
    }
    return await promise;
  }

  /** Lets time pass until the condition holds. */
  async until(ms: number, what: string, condition: () => boolean): Promise<void> {
    const endMs = this.clock.monotonicMs() + ms;
    await this.clock.advance(0);
    while (!condition()) {
      if (this.clock.monotonicMs() >= endMs) throw new Error(`not within ${ms} ms: ${what}`);
      await this.clock.step(endMs);
    }
  }

  /** Commands that reached a node, retries and all. */
  commands(): Command[] {
    return this.cluster.received.flatMap(({ message }) =>
      message.kind === "command" ? [decodeCommand(message.payload)] : [],
    );
  }

  keepalives(): { readonly atMs: number; readonly number: number }[] {
    return this.cluster.received.flatMap(({ atMs, message }) =>
      message.kind === "keepalive" ? [{ atMs, number: message.number }] : [],
    );
  }
}

export function isCommand(message: ClientMessage, kind: Command["kind"]): boolean {
  return message.kind === "command" && decodeCommand(message.payload).kind === kind;
}

/** What a promise comes to, without throwing. */
export function outcomeOf<T>(promise: Promise<T>): { value: T | undefined; error: unknown; isSettled: boolean } {
  const seen: { value: T | undefined; error: unknown; isSettled: boolean } = {
    value: undefined,
    error: undefined,
    isSettled: false,
  };
  promise.then(
    (value) => Object.assign(seen, { value, isSettled: true }),
    (error: unknown) => Object.assign(seen, { error, isSettled: true }),
  );
  return seen;
}

/** Park and Miller's generator: enough to differ between seeds. */
export function seededRandom(seed: number): Random {
  let state = (seed * 2_654_435_761) % 2_147_483_647 || 1;
  const next = (): number => {
    state = (state * 48_271) % 2_147_483_647;
    return state;
  };
  return {
    fraction: () => next() / 2_147_483_647,
    key: () => Array.from({ length: 4 }, () => (next() >>> 0).toString(16).padStart(8, "0")).join(""),
  };
}
