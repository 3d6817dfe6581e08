/** The network between all processes of a run: which ways are in which condition, and the connections over them. */
import type { SimulatedProcess } from "../process.js";
import type { Random } from "../random.js";
import type { Scheduler } from "../scheduler.js";
import type { TraceHash } from "../trace-hash.js";
import { Connection } from "./connection.js";
import type { Route, Tap } from "./connection.js";
import { createCounts } from "./counts.js";
import type { NetworkCounts } from "./counts.js";
import type { Opening } from "./endpoint.js";
import type { Upgrade } from "./packet.js";
import { Place } from "./place.js";
import { Way } from "./way.js";
import type { Latency, Repeats, Slowness, Undo } from "./way.js";

export interface NetworkOptions extends Latency {
  /** Bytes of one direction of a socket that the two kernels hold together. */
  readonly kernelBytes: number;
}

export const usualNetwork: NetworkOptions = {
  latencyMsMin: 0.2,
  latencyMsMax: 1,
  retransmitMs: 200,
  retransmitMsMax: 3_000,
  kernelBytes: 262_144,
};

const hostPattern = /^[a-z0-9-]+$/;

export interface NetworkParts {
  readonly scheduler: Scheduler;
  readonly random: Random;
  readonly hash: TraceHash;
}

export interface Call {
  readonly from: Place;
  readonly process: SimulatedProcess;
  /** "place:port" */
  readonly address: string;
  readonly upgrade: Upgrade;
  readonly isClient: boolean;
  readonly tap: Tap | null;
}

export class Network {
  readonly counts: NetworkCounts = createCounts();
  readonly #options: NetworkOptions;
  readonly #parts: NetworkParts;
  readonly #places = new Map<string, Place>();
  readonly #ways = new Map<string, Way>();
  readonly #routes = new Map<string, Route>();
  #connections = 0;

  constructor(options: NetworkOptions, parts: NetworkParts) {
    this.#options = options;
    this.#parts = parts;
  }

  /** The machine of this name, which is its host name too; made when it is named first. */
  place(name: string): Place {
    let place = this.#places.get(name);
    if (place === undefined) {
      place = new Place(name, {
        counts: this.counts,
        onTurnedOn: (each) => {
          for (const way of this.#ways.values()) if (way.from === each || way.to === each) way.noteHealed();
        },
        onDied: (each) => {
          for (const way of this.#ways.values()) if (way.from === each) way.discardAll();
        },
      });
      this.#places.set(name, place);
    }
    return place;
  }

  /** Those that were ever named. */
  allPlaces(): Iterable<Place> {
    return this.#places.values();
  }

  /** Nothing gets through from one to the other. TCP keeps what is sent, and delivers it late if the sockets live so long. */
  cut(from: string, to: string): Undo {
    return this.#way(from, to).cut();
  }

  /** Frames that have waited on these ways for a machine that was off. */
  asleep(isMeant: (from: string, to: string) => boolean): number {
    let frames = 0;
    for (const { from, to, framesAsleep } of this.#ways.values()) {
      if (isMeant(from.name, to.name)) frames += framesAsleep;
    }
    return frames;
  }

  /** Frames that cuts have held up on these ways. */
  cutOff(isMeant: (from: string, to: string) => boolean): number {
    let frames = 0;
    for (const { from, to, framesCutOff } of this.#ways.values()) {
      if (isMeant(from.name, to.name)) frames += framesCutOff;
    }
    return frames;
  }

  slow(from: string, to: string, slowness: Slowness): Undo {
    return this.#way(from, to).slow(slowness);
  }

  /** For each socket. */
  throttle(from: string, to: string, bytesPerSecond: number): Undo {
    return this.#way(from, to).throttle(bytesPerSecond);
  }

  /** TCP shows a loss as a delay. */
  lossy(from: string, to: string, probability: number): Undo {
    return this.#way(from, to).lossy(probability);
  }

  repeating(from: string, to: string, repeats: Repeats): Undo {
    return this.#way(from, to).repeating(repeats);
  }

  /** Resets the connections between these two, each with this probability. */
  reset(one: string, other: string, probability = 1): void {
    const [a, b] = [this.place(one), this.place(other)];
    const met = new Set<Connection>();
    for (const end of [...a.endpoints, ...b.endpoints]) {
      const { caller, callee } = end.connection.ends;
      if ((caller === a && callee === b) || (caller === b && callee === a)) met.add(end.connection);
    }
    for (const connection of met) if (this.#parts.random.chance(probability)) connection.reset();
  }

  /** Null when the address has no host's name. Who calls is alive, and so is its machine. */
  connect(call: Call, opening: Opening): Connection | null {
    const { from, upgrade, isClient, tap } = call;
    const colon = call.address.lastIndexOf(":");
    const host = call.address.slice(0, Math.max(colon, 0));
    if (!hostPattern.test(host)) return null;
    const callee = this.place(host);
    from.turnOn();
    this.#connections += 1;
    this.counts.dials += 1;
    const options = {
      number: this.#connections,
      port: Number(call.address.slice(colon + 1)),
      upgrade,
      isClient,
      tap,
      kernelBytes: this.#options.kernelBytes,
      route: this.#route(`${from.name}>${call.address}${upgrade.path}`),
    };
    const ends = {
      caller: from,
      callee,
      there: this.#way(from.name, callee.name),
      back: this.#way(callee.name, from.name),
    };
    return new Connection(options, ends, call.process, opening, { ...this.#parts, counts: this.counts });
  }

  #way(from: string, to: string): Way {
    const key = `${from}>${to}`;
    let way = this.#ways.get(key);
    if (way === undefined) {
      const ends = { from: this.place(from), to: this.place(to) };
      way = new Way(ends, this.#options, { random: this.#parts.random, counts: this.counts });
      this.#ways.set(key, way);
    }
    return way;
  }

  #route(key: string): Route {
    let route = this.#routes.get(key);
    if (route === undefined) {
      route = { newest: 0, end: null };
      this.#routes.set(key, route);
    }
    return route;
  }
}
