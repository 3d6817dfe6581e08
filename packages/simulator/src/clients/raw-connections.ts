/** The sockets of a client that speaks the protocol by hand: one to every node at once, none of which it trusts or spares. */
import type { Socket, Transport } from "@holdfast/client";
import { decodeServerFrame, encodeClientFrame, limits } from "@holdfast/wire";
import type { ClientMessage, ServerMessage } from "@holdfast/wire";
import type { SimulatedProcess } from "../process.js";
import type { Random } from "../random.js";
import type { Counts } from "./counts.js";

export interface RawConnectionsParts {
  readonly process: SimulatedProcess;
  readonly transport: Transport;
  readonly random: Random;
  readonly counts: Counts;
}

export interface RawConnectionsEvents {
  onMessage(connection: RawConnection, message: ServerMessage): void;
}

export interface RawConnection {
  readonly endpoint: string;
  socket: Socket | null;
  isWelcome: boolean;
  /** By its own word. */
  isLeader: boolean;
  node: string | null;
  /** Sessions that were resumed here, or opened, as far as is known. */
  readonly sessions: Set<number>;
}

const redialMsMax = 300;
/** A welcome that doesn't come. */
const welcomeMsMax = 2_000;

export class RawConnections {
  readonly all: readonly RawConnection[];
  readonly #parts: RawConnectionsParts;
  readonly #events: RawConnectionsEvents;
  readonly #info: string;
  #isClosed = false;

  constructor(info: string, endpoints: readonly string[], parts: RawConnectionsParts, events: RawConnectionsEvents) {
    this.#info = info;
    this.#parts = parts;
    this.#events = events;
    this.all = endpoints.map((endpoint) => {
      return { endpoint, socket: null, isWelcome: false, isLeader: false, node: null, sessions: new Set<number>() };
    });
  }

  open(): void {
    for (const connection of this.all) this.#dial(connection);
  }

  close(): void {
    this.#isClosed = true;
    for (const connection of this.all) this.#drop(connection);
  }

  get welcome(): readonly RawConnection[] {
    return this.all.filter(({ isWelcome }) => isWelcome);
  }

  get leaders(): readonly RawConnection[] {
    return this.all.filter(({ isWelcome, isLeader }) => isWelcome && isLeader);
  }

  send(connection: RawConnection, messages: readonly ClientMessage[]): void {
    connection.socket?.send(encodeClientFrame(messages));
  }

  /** More than a node lets wait of one connection before it reads the rest, and at times more than it lets pile up of its answers. */
  flood(messages: readonly ClientMessage[]): void {
    const { random, counts } = this.#parts;
    const [connection] = [...random.shuffle(this.leaders), ...random.shuffle(this.welcome)];
    if (connection === undefined) return;
    counts.add("raw: flood");
    for (let count = random.between(50, 300); count > 0; count -= 1) this.send(connection, messages);
  }

  /** Hangs up, and calls again. */
  redial(connection: RawConnection): void {
    this.#drop(connection);
    this.#dialLater(connection);
  }

  /** A caller who says these bytes after a good hello, and then hangs up. `onMessage` hears what the node makes of it. */
  throwAt(endpoint: string, frames: readonly Uint8Array[], onMessage: (message: ServerMessage) => void): void {
    const { process, transport, random } = this.#parts;
    const socket = transport.open(endpoint, {
      onOpened: () => {
        if (random.chance(0.8)) socket.send(encodeClientFrame([this.#hello()]));
        for (const frame of frames) socket.send(frame);
        process.setTimer(random.logUniform(1, 1_000), () => socket.terminate());
      },
      onFrame: (frame) => {
        for (const message of decodeServerFrame(frame)) onMessage(message);
      },
      onPong: () => undefined,
      onClosed: () => this.#parts.counts.add("raw: stranger cut off"),
    });
  }

  #dial(connection: RawConnection): void {
    if (this.#isClosed || connection.socket !== null) return;
    const { process, transport } = this.#parts;
    const socket = transport.open(connection.endpoint, {
      onOpened: () => {
        if (connection.socket === socket) socket.send(encodeClientFrame([this.#hello()]));
      },
      onFrame: (frame) => {
        for (const message of decodeServerFrame(frame)) this.#onMessage(connection, message);
      },
      onPong: () => undefined,
      onClosed: () => {
        if (connection.socket !== socket) return;
        this.#forget(connection);
        this.#dialLater(connection);
      },
    });
    connection.socket = socket;
    process.setTimer(welcomeMsMax, () => {
      if (connection.socket === socket && !connection.isWelcome) this.redial(connection);
    });
  }

  #dialLater(connection: RawConnection): void {
    const { process, random } = this.#parts;
    process.setTimer(random.logUniform(5, redialMsMax), () => this.#dial(connection));
  }

  #drop(connection: RawConnection): void {
    connection.socket?.terminate();
    this.#forget(connection);
  }

  #forget(connection: RawConnection): void {
    connection.socket = null;
    connection.isWelcome = false;
    connection.isLeader = false;
    connection.sessions.clear();
  }

  #onMessage(connection: RawConnection, message: ServerMessage): void {
    switch (message.kind) {
      case "welcome":
        connection.isWelcome = true;
        connection.node = message.node;
        connection.isLeader = message.leader?.id === message.node;
        return;
      case "leader":
        connection.isLeader = message.leader?.id === connection.node;
        connection.sessions.clear();
        return;
      default:
        this.#events.onMessage(connection, message);
    }
  }

  /** It never says how far it has seen: a node that is behind greets it all the same. */
  #hello(): ClientMessage {
    const common = { protocol: limits.protocolVersion, features: [], clusterId: null };
    return { kind: "hello", ...common, seenIndex: 0, info: this.#info };
  }
}
