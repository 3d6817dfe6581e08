/** A websocket call under way: its handshake against the clock of the caller. */
import type { Cancellable } from "../scheduler.js";
import type { Connection } from "./connection.js";
import type { Endpoint } from "./endpoint.js";
import type { Call, Network } from "./network.js";

export interface CallingEvents {
  /** The end must be attached to at once. */
  onOpened(process: string, end: Endpoint): void;
  onRejected(status: number): void;
  onFailed(kind: "connectionRefused" | "dialFailed", problem: string): void;
}

/** What a handshake of ws says when its time is over. */
const timedOut = "Opening handshake has timed out";

export class Calling {
  readonly #network: Network;
  readonly #call: Call;
  #events: CallingEvents | null;
  #timer: Cancellable | null = null;
  #connection: Connection | null;

  constructor(network: Network, call: Call, handshakeMs: number, events: CallingEvents) {
    this.#network = network;
    this.#call = call;
    this.#events = events;
    // What is left of a killed process calls nobody.
    if (call.process.isKilled) {
      this.#connection = null;
      return;
    }
    this.#connection = network.connect(call, {
      onStep: (packet) => {
        if (packet.kind === "accepted") this.#onAccepted(packet.process);
        else if (packet.kind === "rejected") this.#onRejected(packet.status);
      },
      onBroken: (kind, problem) => this.#fail(kind, kind === "connectionRefused" ? this.#refusal() : problem),
    });
    if (this.#connection === null) {
      call.process.deliverIn(0, "lookup", () => this.#fail("dialFailed", `getaddrinfo ENOTFOUND ${call.address}`));
      return;
    }
    this.#timer = call.process.setTimer(handshakeMs, () => {
      network.counts.hungDials += 1;
      this.#connection?.caller.hangUp();
      this.#fail("dialFailed", timedOut);
    });
  }

  cancel(): void {
    if (this.#events === null) return;
    this.#end();
    this.#connection?.caller.hangUp();
  }

  #refusal(): string {
    return `connect ECONNREFUSED ${this.#call.address}`;
  }

  #onAccepted(process: string): void {
    const events = this.#end();
    const end = this.#connection?.caller;
    if (events === null || end === undefined) return;
    end.open();
    events.onOpened(process, end);
    if (!end.isAttached) throw new Error("a call was answered, and nobody attached to it");
  }

  #onRejected(status: number): void {
    const events = this.#end();
    this.#network.counts.rejectedDials += 1;
    this.#connection?.caller.hangUp();
    events?.onRejected(status);
  }

  #fail(kind: "connectionRefused" | "dialFailed", problem: string): void {
    this.#end()?.onFailed(kind, problem);
  }

  #end(): CallingEvents | null {
    const events = this.#events;
    this.#events = null;
    this.#timer?.cancel();
    return events;
  }
}
