/** A machine's side of the network: who listens on it, its ends of connections, and what becomes of them when a process or the machine dies. */
import type { SimulatedProcess } from "../process.js";
import type { Connection } from "./connection.js";
import type { NetworkCounts } from "./counts.js";
import type { Endpoint } from "./endpoint.js";
import type { Upgrade } from "./packet.js";
import type { Machine } from "./way.js";

export interface Listener {
  readonly process: SimulatedProcess;
  /** Must accept or reject it at once. */
  onCall(connection: Connection, upgrade: Upgrade): void;
}

export interface PlaceParts {
  readonly counts: NetworkCounts;
  /** The machine is on again. */
  onTurnedOn(place: Place): void;
  /** What its kernel had to send is gone with the machine. */
  onDied(place: Place): void;
}

/** Ports that nobody asked for by number begin here. */
const freePortsFrom = 30_000;

export class Place implements Machine {
  readonly name: string;
  readonly endpoints: Set<Endpoint> = new Set();
  readonly #listeners = new Map<number, Listener>();
  readonly #parts: PlaceParts;
  #isOff = false;

  constructor(name: string, parts: PlaceParts) {
    this.name = name;
    this.#parts = parts;
  }

  get isOff(): boolean {
    return this.#isOff;
  }

  listenerAt(port: number): Listener | null {
    return this.#listeners.get(port) ?? null;
  }

  /** Returns the port, which is another one for 0; null when it is taken. */
  listen(port: number, listener: Listener): number | null {
    this.turnOn();
    let chosen = port;
    if (port === 0) for (chosen = freePortsFrom; this.#listeners.has(chosen); chosen += 1);
    if (this.#listeners.has(chosen)) return null;
    this.#listeners.set(chosen, listener);
    return chosen;
  }

  stopListening(port: number, listener: Listener): void {
    if (this.#listeners.get(port) === listener) this.#listeners.delete(port);
  }

  /**
   * To be called with SimulatedProcess.kill(). "process": the kernel closes its sockets, and the others hear it. "machine": nothing is sent,
   * and nothing comes through until a process listens or dials here, or turnOn().
   */
  onProcessKilled(process: SimulatedProcess, kind: "process" | "machine"): void {
    const isHit = (its: SimulatedProcess | null): boolean => kind === "machine" || its === process;
    for (const [port, listener] of this.#listeners) if (isHit(listener.process)) this.#listeners.delete(port);
    if (kind === "machine") {
      this.turnOff();
      this.#parts.counts.halfOpen += this.endpoints.size;
    }
    for (const end of [...this.endpoints]) {
      if (kind === "machine") end.vanish();
      else if (isHit(end.process)) end.hangUp();
    }
    if (kind === "machine") this.#parts.onDied(this);
  }

  /** Frames from and to it wait, as in a cut: the machine is suspended, or has died. */
  turnOff(): void {
    this.#isOff = true;
  }

  /** Sockets that it had before its death are unknown now: a frame to one is answered with a reset. */
  turnOn(): void {
    if (!this.#isOff) return;
    this.#isOff = false;
    this.#parts.onTurnedOn(this);
  }
}
