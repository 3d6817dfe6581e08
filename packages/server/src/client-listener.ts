/** The client port: websockets for clients, plain HTTP beside them. */
import { createServer } from "node:http";
import type { IncomingMessage, Server } from "node:http";
import type { Socket } from "node:net";
import { limits } from "@holdfast/wire";
import { WebSocketServer } from "ws";
import type { WebSocket } from "ws";
import type { Address } from "./address.js";
import { ClientSocket } from "./client-socket.js";
import { FlushQueue } from "./flush-queue.js";
import { doorProblem } from "./http.js";
import type { HttpOptions, HttpSide } from "./http.js";
import { closeServer, listenOn } from "./listening.js";
import type { RejectionReason } from "./metrics.js";
import type { ClientEvents, Clock, Logger } from "./ports.js";
import { Sweeper } from "./sweeper.js";
import { answerGarbage, answerOtherUpgrade, answerUpgrade, remoteOf } from "./upgrades.js";
import { attachTo, closeTimeoutMs } from "./web-socket.js";
import type { WsServerOptions } from "./web-socket.js";

export interface ClientListenerOptions {
  readonly listen: Address;
  readonly http: HttpOptions;
  readonly connectionsMax: number;
  /** Sockets between TCP connect and the end of their handshake. */
  readonly pendingUpgradesMax: number;
  readonly bufferedBytesSlow: number;
  readonly bufferedBytesMax: number;
  /** Time for a request's head, and time for a hello. */
  readonly headMs: number;
  readonly helloMs: number;
  /** A connection that was silent for one period is pinged; after two more it is closed. */
  readonly pingMs: number;
}

export interface ClientListenerParts {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly http: HttpSide;
  onRejected(reason: RejectionReason): void;
}

const quietPeriodsMax = 3;

export class ClientListener {
  private readonly options: ClientListenerOptions;
  private readonly parts: ClientListenerParts;
  private readonly server: Server;
  private readonly upgrader: WebSocketServer;
  private readonly sweeper: Sweeper;
  private readonly pending = new Set<Socket>();
  private readonly connections = new Set<ClientSocket>();
  private events: ClientEvents | null = null;
  private readonly flushes = new FlushQueue(queueMicrotask);
  private lastId = 0;

  constructor(options: ClientListenerOptions, parts: ClientListenerParts) {
    this.options = options;
    this.parts = parts;
    this.upgrader = createUpgrader();
    const timeouts = {
      headersTimeout: options.headMs,
      requestTimeout: options.headMs,
      connectionsCheckingInterval: options.headMs / 2,
      // A request may wait for long, and nothing is written meanwhile: a machine that is gone is noticed all the same.
      keepAlive: true,
      keepAliveInitialDelay: 3 * options.pingMs,
    };
    this.server = createServer(timeouts, (request, response) => {
      this.onRequest(request.socket);
      parts.http.handle(request, response);
    });
    // Beyond it sockets are closed unheard: those that have asked something and stay open are in no other count.
    this.server.maxConnections = options.connectionsMax + options.http.requestsMax + options.pendingUpgradesMax;
    this.server.on("connection", (socket: Socket) => this.onConnection(socket));
    this.server.on("clientError", (error: NodeJS.ErrnoException, socket) => answerGarbage(error, socket));
    this.server.on("upgrade", (request: IncomingMessage, socket: Socket, head: Buffer) =>
      this.onUpgrade(request, socket, head),
    );
    this.sweeper = new Sweeper(parts.clock, options.pingMs, () => {
      for (const connection of this.connections) connection.sweep(quietPeriodsMax);
    });
  }

  /** Resolves with the port; rejects with a ListenError. Health and metrics answer from now on. */
  async start(): Promise<number> {
    const port = await listenOn(this.server, this.options.listen, "clients");
    this.sweeper.start();
    return port;
  }

  /** From now on clients are let in; before that they are told to come back (503). */
  open(events: ClientEvents): void {
    this.events = events;
    this.parts.http.open(events);
  }

  figures(): { readonly connections: number; readonly bufferedBytes: number } {
    let bufferedBytes = 0;
    for (const connection of this.connections) bufferedBytes += connection.bufferedBytes;
    return { connections: this.connections.size, bufferedBytes };
  }

  /** Nobody new is let in; those who are in are told to go elsewhere. */
  async close(): Promise<void> {
    this.events = null;
    this.sweeper.stop();
    this.parts.http.close();
    for (const connection of this.connections) connection.close(1001, "the node is stopping");
    const { clock } = this.parts;
    const deadlineMs = clock.monotonicMs() + 500;
    while (this.connections.size > 0 && clock.monotonicMs() < deadlineMs) {
      await new Promise<void>((resolve) => clock.setTimer(5, resolve));
    }
    await this.abandon();
  }

  /** Tears everything down at once. */
  async abandon(): Promise<void> {
    this.events = null;
    this.sweeper.stop();
    this.parts.http.close();
    for (const connection of this.connections) connection.terminate("the node is stopping");
    for (const socket of this.pending) socket.destroy();
    await closeServer(this.server);
  }

  private onConnection(socket: Socket): void {
    if (this.pending.size >= this.options.pendingUpgradesMax) {
      this.parts.onRejected("pending_cap");
      socket.destroy();
      return;
    }
    this.pending.add(socket);
    socket.once("close", () => this.pending.delete(socket));
  }

  /** A whole head has come: it waits for its handshake no more. */
  private onRequest(socket: Socket): void {
    this.pending.delete(socket);
  }

  private onUpgrade(request: IncomingMessage, socket: Socket, head: Buffer): void {
    // Until ws takes the socket nobody else hears its errors, and an unheard one ends the process.
    socket.on("error", () => socket.destroy());
    if (request.headers.upgrade?.toLowerCase() !== "websocket") {
      this.parts.onRejected("bad_frame");
      return answerOtherUpgrade(socket);
    }
    const problem = doorProblem(request, this.options.http);
    const { events } = this;
    if (problem !== null) return this.refuse(socket, problem.reason, problem.status);
    if (events === null) return this.refuse(socket, "not_ready", 503);
    if (this.connections.size >= this.options.connectionsMax) return this.refuse(socket, "connection_cap", 503);
    this.upgrader.handleUpgrade(request, socket, head, (webSocket) =>
      this.onConnected(webSocket, socket, remoteOf(request), events),
    );
  }

  private onConnected(webSocket: WebSocket, socket: Socket, remote: string, events: ClientEvents): void {
    this.pending.delete(socket);
    this.lastId += 1;
    const { helloMs, bufferedBytesSlow, bufferedBytesMax } = this.options;
    const options = { id: this.lastId, remote, helloMs, bufferedBytesSlow, bufferedBytesMax };
    const connection = new ClientSocket(options, this.parts, attachTo(webSocket, socket, this.parts.clock), {
      onFrame: (from, frame) => events.onFrame(from, frame),
      onClosed: (closed) => {
        this.connections.delete(closed);
        events.onClosed(closed);
      },
      onRejected: (reason) => this.parts.onRejected(reason),
      onDirty: (from) => this.flushes.add(from),
    });
    this.connections.add(connection);
    this.parts.logger.debug({ remote, connection: connection.id }, "client connected");
    events.onOpened(connection);
  }

  private refuse(socket: Socket, reason: RejectionReason, status: number): void {
    this.parts.onRejected(reason);
    answerUpgrade(socket, status);
  }
}

export function createClientListener(options: ClientListenerOptions, parts: ClientListenerParts): ClientListener {
  return new ClientListener(options, parts);
}

function createUpgrader(): WebSocketServer {
  const options: WsServerOptions = {
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: limits.clientFrameBytesMax,
    maxFragments: limits.frameFragmentsMax,
    maxBufferedChunks: limits.clientFrameChunksMax,
    closeTimeout: closeTimeoutMs,
    autoPong: true,
  };
  return new WebSocketServer(options);
}
