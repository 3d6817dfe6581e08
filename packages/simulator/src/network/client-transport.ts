/** The client library's port, and the nodes' door for clients, over the virtual network. */
import type { Socket, SocketEvents, Transport } from "@holdfast/client";
import type { Attach } from "@holdfast/server/parts";
import { limits } from "@holdfast/wire";
import type { SimulatedProcess } from "../process.js";
import { Calling } from "./calling.js";
import type { Tap } from "./connection.js";
import { Door } from "./door.js";
import type { Endpoint } from "./endpoint.js";
import type { Network } from "./network.js";

/** As in the client's own ports. */
const handshakeMs = 2_000;

export interface ClientTransportOptions {
  readonly place: string;
  readonly process: SimulatedProcess;
  /** A socket in which more piles up is torn down. */
  readonly bufferedBytesMax?: number;
  /** Sees each frame of its connections when it is sent, and when it is delivered. */
  readonly tap: Tap | null;
}

export function createClientTransport(network: Network, options: ClientTransportOptions): Transport {
  return { open: (endpoint, events) => new VirtualSocket(network, options, endpoint, events) };
}

export interface ClientDoorEvents {
  /** Null to let a client in, or an HTTP status. */
  judge(): number | null;
  /** Must attach at once. `remote`: "place:port". */
  onCall(remote: string, attach: Attach): void;
}

export function createClientDoor(
  network: Network,
  placeName: string,
  process: SimulatedProcess,
  events: ClientDoorEvents,
): Door {
  return new Door({ name: "", purpose: "clients" }, network.place(placeName), process, {
    onCall: ({ remote, attach }) => {
      const status = events.judge();
      if (status === null) events.onCall(remote, attach);
      return status;
    },
  });
}

class VirtualSocket implements Socket {
  readonly #calling: Calling;
  readonly #network: Network;
  readonly #bufferedBytesMax: number;
  #events: SocketEvents | null;
  #end: Endpoint | null = null;

  constructor(network: Network, options: ClientTransportOptions, address: string, events: SocketEvents) {
    const { process, tap } = options;
    this.#events = events;
    this.#network = network;
    this.#bufferedBytesMax = options.bufferedBytesMax ?? limits.clientBufferedBytesMax;
    const upgrade = { path: "/", process: "", dial: 0, secret: null };
    const call = { from: network.place(options.place), process, address, upgrade, isClient: true, tap };
    this.#calling = new Calling(network, call, handshakeMs, {
      onOpened: (_, end) => this.#onOpened(end),
      onRejected: (status) => this.#onClosed(`Unexpected server response: ${status}`),
      onFailed: (_, problem) => this.#onClosed(problem),
    });
  }

  send(frame: Uint8Array): void {
    const end = this.#end;
    if (end === null || !end.isOpen) return;
    if (end.bufferedBytes + frame.length <= this.#bufferedBytesMax) {
      end.send(frame);
      return;
    }
    this.#network.counts.clientBuffersFull += 1;
    end.terminate("reads too slowly");
  }

  ping(): void {
    this.#end?.ping();
  }

  close(): void {
    this.#events = null;
    if (this.#end?.isOpen === true) this.#end.close(1000, "", true);
    else this.terminate();
  }

  terminate(): void {
    this.#events = null;
    this.#calling.cancel();
    this.#end?.terminate(null);
  }

  #onOpened(end: Endpoint): void {
    this.#end = end.attach({
      onMessage: (bytes) => this.#events?.onFrame(bytes),
      onPong: () => this.#events?.onPong(),
      onClosed: (problem, code) => this.#onClosed(problem ?? `closed with code ${code}`, code),
    });
    this.#events?.onOpened();
  }

  #onClosed(problem: string, code = 0): void {
    const events = this.#events;
    this.#events = null;
    events?.onClosed(code === 1006 && problem.startsWith("closed without") ? "closed with code 1006" : problem);
  }
}
