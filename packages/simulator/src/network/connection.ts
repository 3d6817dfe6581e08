/** A connection between two processes: two ends, a pipe each way, and the steps of its opening that the kernels do by themselves. */
import type { Random } from "../random.js";
import type { SimulatedProcess } from "../process.js";
import type { Scheduler } from "../scheduler.js";
import type { TraceHash } from "../trace-hash.js";
import type { NetworkCounts } from "./counts.js";
import { Endpoint } from "./endpoint.js";
import type { Opening } from "./endpoint.js";
import type { Packet, Upgrade } from "./packet.js";
import { Pipe } from "./pipe.js";
import type { PipeParts } from "./pipe.js";
import type { Place } from "./place.js";
import type { Way } from "./way.js";

export type Side = "caller" | "callee";

/** A frame on its way between a client and a node. */
export interface TappedFrame {
  readonly client: string;
  readonly node: string;
  /** Number of the connection in this run. */
  readonly connection: number;
  readonly direction: "toNode" | "toClient";
  /** The sending library has handed it over, or the receiving one gets it now. */
  readonly phase: "sent" | "delivered";
  readonly bytes: Uint8Array;
}

export type Tap = (frame: TappedFrame) => void;

/** Calls that take each other's place: those of one machine to one address and lane. */
export interface Route {
  newest: number;
  /** The called end of the newest one. */
  end: Endpoint | null;
}

export interface ConnectionOptions {
  readonly number: number;
  readonly port: number;
  readonly upgrade: Upgrade;
  /** A client's call to a node; else a peer's. */
  readonly isClient: boolean;
  readonly kernelBytes: number;
  readonly route: Route;
  readonly tap: Tap | null;
}

export interface ConnectionParts extends PipeParts {
  readonly random: Random;
  readonly hash: TraceHash;
  readonly counts: NetworkCounts;
}

export interface ConnectionEnds {
  readonly caller: Place;
  readonly callee: Place;
  readonly there: Way;
  readonly back: Way;
}

export class Connection {
  readonly caller: Endpoint;
  readonly callee: Endpoint;
  readonly counts: NetworkCounts;
  readonly random: Random;
  readonly there: Pipe;
  readonly back: Pipe;
  readonly ends: ConnectionEnds;
  /** The caller knows that somebody listens. */
  isAnswered = false;
  readonly #options: ConnectionOptions;
  readonly #hash: TraceHash;
  readonly #scheduler: Scheduler;

  constructor(
    options: ConnectionOptions,
    ends: ConnectionEnds,
    process: SimulatedProcess,
    opening: Opening,
    parts: ConnectionParts,
  ) {
    this.#options = options;
    this.ends = ends;
    this.counts = parts.counts;
    this.random = parts.random;
    this.#hash = parts.hash;
    this.#scheduler = parts.scheduler;
    this.caller = new Endpoint(this, "caller", process, opening);
    this.callee = new Endpoint(this, "callee", null, null);
    this.there = new Pipe(ends.there, options.kernelBytes, this.callee, parts);
    this.back = new Pipe(ends.back, options.kernelBytes, this.caller, parts);
    this.caller.connect(this.there, this.back);
    this.callee.connect(this.back, this.there);
    ends.caller.endpoints.add(this.caller);
    this.caller.write({ kind: "syn", port: options.port });
  }

  /** Between peers both ends ping, and any byte is a sign of life. */
  get answersPings(): boolean {
    return this.#options.isClient;
  }

  get number(): number {
    return this.#options.number;
  }

  placeOf(end: Endpoint): Place {
    return end.side === "caller" ? this.ends.caller : this.ends.callee;
  }

  otherPlace(end: Endpoint): Place {
    return end.side === "caller" ? this.ends.callee : this.ends.caller;
  }

  /** "place:port" of the caller. */
  get remote(): string {
    return `${this.ends.caller.name}:${40_000 + (this.#options.number % 20_000)}`;
  }

  noteAccepted(): void {
    const { route, number } = this.#options;
    if (number <= route.newest) return;
    route.newest = number;
    route.end = this.callee;
  }

  /** A frame that was called in has been read: it may come again, on the socket that there is then. */
  maybeRepeat(bytes: Uint8Array): void {
    const { route } = this.#options;
    const { way } = this.there;
    const afterMs = way.repeatAfterMs(bytes);
    if (afterMs === null) return;
    this.#scheduler.after(afterMs, `again ${way.from.name}>${way.to.name}`, () => route.end?.onRepeat(bytes));
  }

  /** True for what no process sees. */
  onKernelPacket(end: Endpoint, packet: Packet): boolean {
    if (packet.kind === "syn") {
      this.#onSyn(end, packet.port);
      return true;
    }
    if (packet.kind === "synAck") {
      this.isAnswered = true;
      end.write({ kind: "upgrade", upgrade: this.#options.upgrade });
      return true;
    }
    return false;
  }

  noteFrame(side: Side, bytes: Uint8Array, phase: "sent" | "delivered"): void {
    const { tap, route, number } = this.#options;
    if (phase === "delivered") {
      this.counts.framesDelivered += 1;
      this.#hash.add(digestOf(bytes), "");
      if (side === "callee" && number < route.newest) this.counts.lateDrains += 1;
    }
    if (tap === null) return;
    const isToNode = (side === "caller") === (phase === "sent");
    const { caller, callee } = this.ends;
    const direction = isToNode ? "toNode" : "toClient";
    tap({ client: caller.name, node: callee.name, connection: number, direction, phase, bytes });
  }

  noteGone(end: Endpoint): void {
    this.placeOf(end).endpoints.delete(end);
  }

  /** By a box in the middle: both ends hear of it, each if its way is open. */
  reset(): void {
    if (!this.ends.there.isBlocked) this.there.sendReset();
    if (!this.ends.back.isBlocked) this.back.sendReset();
  }

  #onSyn(end: Endpoint, port: number): void {
    const { callee } = this.ends;
    const listener = callee.listenerAt(port);
    if (listener === null) {
      this.counts.refusedDials += 1;
      end.refuse();
      return;
    }
    end.adopt(listener.process, {
      onStep: (packet) => {
        if (packet.kind === "upgrade") listener.onCall(this, packet.upgrade);
      },
      onBroken: () => undefined,
    });
    callee.endpoints.add(end);
    end.write({ kind: "synAck" });
  }
}

const digestedBytes = 16;

/** Length, head and tail tell frames apart well enough. */
function digestOf(bytes: Uint8Array): number {
  const { length } = bytes;
  let digest = length;
  const headEnd = Math.min(length, digestedBytes);
  for (let at = 0; at < headEnd; at += 1) digest = Math.imul(digest ^ (bytes[at] as number), 0x01000193);
  for (let at = Math.max(headEnd, length - digestedBytes); at < length; at += 1) {
    digest = Math.imul(digest ^ (bytes[at] as number), 0x01000193);
  }
  return digest;
}
