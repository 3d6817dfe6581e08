/** A node's door for clients: real client sockets over the virtual network, and an ear on the keepalives. */
import type { ClientConnection, ClientEvents, ClientFrame, Logger, NodeHost } from "@holdfast/server";
import { ClientSocket, FlushQueue } from "@holdfast/server/parts";
import type { ClientListenerOptions, NodeListener, NodeListenerParts } from "@holdfast/server/parts";
import type { ClientMessage, ServerMessage } from "@holdfast/wire";
import { createClientDoor } from "../network/index.js";
import type { Door, Network } from "../network/index.js";
import type { SimulatedProcess } from "../process.js";
import type { Recorder } from "../recorder.js";
import { probed } from "./host-access.js";
import { TappedConnection } from "./tapped-connection.js";

interface ListenerContext {
  readonly process: SimulatedProcess;
  readonly network: Network;
  readonly recorder: Recorder;
  note(mark: string): void;
  onRead(connection: number, message: ClientMessage): void;
  onTold(connection: number, message: ServerMessage): void;
  /** Null before the node has one, and after its death. */
  host(): NodeHost | null;
}

const quietPeriodsMax = 3;
const silent = (): void => undefined;

export class SimulatedListener implements NodeListener {
  readonly #options: ClientListenerOptions;
  readonly #parts: NodeListenerParts;
  readonly #context: ListenerContext;
  readonly #connections = new Map<ClientSocket, ClientConnection>();
  readonly #flushes: FlushQueue;
  readonly #door: Door;
  readonly #logger: Logger;
  #events: ClientEvents | null = null;
  #lastId = 0;
  #isClosed = false;

  constructor(options: ClientListenerOptions, parts: NodeListenerParts, context: ListenerContext) {
    this.#options = options;
    this.#parts = parts;
    this.#context = context;
    const warn = (_: object, text: string): void => context.note(text);
    this.#logger = { debug: silent, info: silent, warn, error: silent };
    this.#flushes = new FlushQueue((run) => context.process.defer(run));
    const { network, process } = context;
    this.#door = createClientDoor(network, process.id, process, {
      judge: () => (this.#events === null || this.#connections.size >= options.connectionsMax ? 503 : null),
      onCall: (remote, attach) => {
        if (this.#events !== null) this.#onCall(remote, attach, this.#events);
      },
    });
  }

  start(): Promise<number> {
    this.#sweepLater();
    return this.#door.listen(this.#options.listen);
  }

  open(events: ClientEvents): void {
    this.#events = events;
  }

  figures(): { connections: number; bufferedBytes: number } {
    return { connections: this.#connections.size, bufferedBytes: 0 };
  }

  async close(): Promise<void> {
    this.#events = null;
    for (const socket of this.#connections.keys()) socket.close(1001, "the node is stopping");
    await new Promise<void>((resolve) => this.#context.process.setTimer(50, resolve));
    await this.abandon();
  }

  abandon(): Promise<void> {
    this.#events = null;
    this.#isClosed = true;
    for (const socket of this.#connections.keys()) socket.terminate("the node is stopping");
    return this.#door.close();
  }

  #onCall(remote: string, attach: ConstructorParameters<typeof ClientSocket>[2], events: ClientEvents): void {
    this.#lastId += 1;
    const { helloMs, bufferedBytesSlow, bufferedBytesMax } = this.#options;
    const options = { id: this.#lastId, remote, helloMs, bufferedBytesSlow, bufferedBytesMax };
    const parts = { clock: this.#context.process, logger: this.#logger };
    const socket: ClientSocket = new ClientSocket(options, parts, attach, {
      onFrame: (_, frame) => events.onFrame(tapped, { ...frame, messages: () => this.#heard(socket.id, frame) }),
      onClosed: (closed) => {
        this.#connections.delete(closed);
        events.onClosed(tapped);
      },
      onRejected: (reason) => this.#parts.onRejected(reason),
      onDirty: (from) => this.#flushes.add(from),
    });
    const tapped = new TappedConnection(socket, (message) => {
      this.#context.onTold(socket.id, message);
      this.#noteSent(message);
    });
    this.#connections.set(socket, tapped);
    events.onOpened(tapped);
  }

  #heard(connection: number, frame: ClientFrame): readonly ClientMessage[] {
    const messages = frame.messages();
    for (const message of messages) {
      this.#context.onRead(connection, message);
      if (message.kind === "keepalive") this.#noteReceived(message);
    }
    return messages;
  }

  #noteReceived({ session, number }: { readonly session: number; readonly number: number }): void {
    const { process, recorder } = this.#context;
    const alive = this.#context.host();
    if (alive === null) return;
    const { raft } = probed(alive);
    if (raft.role !== "leader") return;
    recorder.emit({ kind: "keepaliveReceived", node: process.id, term: raft.term, session, number });
  }

  #noteSent(message: ServerMessage): void {
    if (message.kind !== "acknowledged") return;
    const { process, recorder } = this.#context;
    const alive = this.#context.host();
    if (alive === null) return;
    const { raft } = probed(alive);
    const { session, number } = message;
    recorder.emit({ kind: "keepaliveAcknowledged", node: process.id, term: raft.term, session, number });
  }

  #sweepLater(): void {
    this.#context.process.setTimer(this.#options.pingMs, () => {
      if (this.#isClosed) return;
      for (const socket of this.#connections.keys()) socket.sweep(quietPeriodsMax);
      this.#sweepLater();
    });
  }
}
