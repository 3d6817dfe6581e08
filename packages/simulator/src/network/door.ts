/** A listening port of one process: judges calls, takes them, and tears down what it has taken when it closes. */
import { ListenError } from "@holdfast/server/parts";
import type { SimulatedProcess } from "../process.js";
import type { Connection } from "./connection.js";
import type { EndEvents, Endpoint } from "./endpoint.js";
import type { Upgrade } from "./packet.js";
import type { Listener, Place } from "./place.js";

export interface DoorCall {
  readonly upgrade: Upgrade;
  /** "place:port" */
  readonly remote: string;
  /** How many sockets are open already. */
  readonly sockets: number;
  /** Lets the caller in. */
  readonly attach: (events: EndEvents, beforeSend?: () => void) => Endpoint;
}

export interface DoorEvents {
  /** Attaches at once and returns null, or returns the HTTP status of a refusal. */
  onCall(call: DoorCall): number | null;
}

export interface DoorOptions {
  /** The name that callers are told; "" for none. */
  readonly name: string;
  /** For people: who is to come through it. */
  readonly purpose: string;
}

export class Door implements Listener {
  readonly process: SimulatedProcess;
  readonly #options: DoorOptions;
  readonly #place: Place;
  readonly #events: DoorEvents;
  readonly #open = new Set<Endpoint>();
  #port: number | null = null;
  #isClosed = false;

  constructor(options: DoorOptions, place: Place, process: SimulatedProcess, events: DoorEvents) {
    this.#options = options;
    this.#place = place;
    this.process = process;
    this.#events = events;
  }

  listen(address: { readonly host: string; readonly port: number }): Promise<number> {
    // What is left of a killed process waits for ever.
    if (this.process.isKilled) return new Promise(() => undefined);
    const port = this.#place.listen(address.port, this);
    this.#port = port;
    return new Promise((resolve, reject) => {
      this.process.deliverIn(0, "listening", () => {
        const cause = Object.assign(new Error("listen EADDRINUSE"), { code: "EADDRINUSE" });
        if (port === null) reject(new ListenError(address, this.#options.purpose, cause));
        else resolve(port);
      });
    });
  }

  stopListening(): void {
    this.#isClosed = true;
    if (this.#port !== null) this.#place.stopListening(this.#port, this);
  }

  close(): Promise<void> {
    this.stopListening();
    for (const end of [...this.#live()]) end.terminate(null);
    return new Promise((resolve) => {
      this.process.deliverIn(0, "closed", () => resolve());
    });
  }

  onCall(connection: Connection, upgrade: Upgrade): void {
    const end = connection.callee;
    const attach: DoorCall["attach"] = (events, beforeSend) => {
      end.write({ kind: "accepted", process: this.#options.name });
      end.open();
      connection.noteAccepted();
      this.#open.add(end);
      return end.attach(events, beforeSend);
    };
    const { remote } = connection;
    const status = this.#isClosed ? 503 : this.#events.onCall({ upgrade, remote, sockets: this.#live().size, attach });
    if (status === null) {
      if (!end.isAttached) throw new Error("a call was taken, and nobody attached to it");
      return;
    }
    end.write({ kind: "rejected", status });
    end.hangUp();
  }

  /** Calls are rare: that is when those that ended are forgotten. */
  #live(): Set<Endpoint> {
    for (const end of this.#open) if (end.isGone) this.#open.delete(end);
    return this.#open;
  }
}
