/** The listener for peers: takes websocket upgrades on /peer/control and /peer/data, and nothing else. */
import { createHash, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";
import type { IncomingMessage, Server } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { limits } from "@holdfast/wire";
import { WebSocketServer } from "ws";
import type { Address } from "./address.js";
import { closeServer, listenOn } from "./listening.js";
import { lanes } from "./peer-lanes.js";
import type { Clock, Logger } from "./ports.js";
import type { AcceptedCall, Acceptor, AcceptorOptions, Attach } from "./transport.js";
import { answerUpgrade, remoteOf } from "./upgrades.js";
import { attachTo, closeTimeoutMs } from "./web-socket.js";
import type { WsServerOptions } from "./web-socket.js";
import { dialHeader, processHeader } from "./ws-dial.js";

export interface PeerAcceptorParts {
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Time to send the request's head. */
const headMs = 5_000;

export class PeerAcceptor implements Acceptor {
  private readonly options: AcceptorOptions;
  private readonly server: Server;
  private readonly sockets: WebSocketServer;
  private readonly open = new Set<Duplex>();
  private readonly logger: Logger;
  private closed: Promise<void> | null = null;

  constructor(
    options: AcceptorOptions,
    parts: PeerAcceptorParts,
    onCall: (call: AcceptedCall, attach: Attach) => void,
  ) {
    this.options = options;
    this.logger = parts.logger;
    this.sockets = createSocketServer(options.process);
    this.server = createServer(
      { headersTimeout: headMs, requestTimeout: headMs, connectionsCheckingInterval: 1_000 },
      (_, response) => {
        response
          .writeHead(404, { "content-type": "text/plain", connection: "close" })
          .end("this port is for the cluster's nodes\n");
      },
    );
    this.server.on("clientError", (_, socket) => socket.destroy());
    this.server.on("upgrade", (request: IncomingMessage, socket: Socket, head: Buffer) => {
      // Until ws takes the socket nobody else hears its errors, and an unheard one ends the process.
      socket.on("error", () => socket.destroy());
      const call = this.callFor(request);
      if (typeof call === "number") return answerUpgrade(socket, call);
      this.open.add(socket);
      socket.once("close", () => this.open.delete(socket));
      this.sockets.handleUpgrade(request, socket, head, (webSocket) =>
        onCall(call, attachTo(webSocket, socket, parts.clock)),
      );
    });
  }

  listen(address: Address): Promise<number> {
    return listenOn(this.server, address, "peers");
  }

  /** Takes no new calls: a peer that is told goodbye must not get in again through a door that is about to close. */
  stopListening(): void {
    this.closed ??= closeServer(this.server);
  }

  /** Resolves when the port is free. Links that are still open are torn down. */
  async close(): Promise<void> {
    this.stopListening();
    for (const socket of this.open) socket.destroy();
    await this.closed;
  }

  private callFor(request: IncomingMessage): AcceptedCall | number {
    const lane = request.url === "/" ? "control" : lanes.find((each) => request.url === `/peer/${each}`);
    // Who calls without these is judged by its hello alone.
    const process = request.headers[processHeader] ?? "";
    const dial = Number(request.headers[dialHeader] ?? 0);
    if (lane === undefined) return 404;
    // No page in a browser has any business here.
    if (request.headers.origin !== undefined) return 403;
    if (!this.isAuthorized(request.headers.authorization)) {
      this.logger.warn({ remote: remoteOf(request) }, "a peer link without the cluster's secret was refused");
      return 401;
    }
    if (typeof process !== "string" || process.length > 64 || !Number.isSafeInteger(dial)) return 400;
    if (this.closed !== null || this.open.size >= this.options.socketsMax) return 503;
    return { lane, process, dial, remote: remoteOf(request) };
  }

  private isAuthorized(authorization: string | undefined): boolean {
    const { secret } = this.options;
    if (secret === null) return true;
    return timingSafeEqual(digest(authorization ?? ""), digest(`Bearer ${secret}`));
  }
}

function createSocketServer(process: string): WebSocketServer {
  const options: WsServerOptions = {
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: limits.peerFrameBytesMax,
    maxFragments: limits.frameFragmentsMax,
    maxBufferedChunks: limits.peerFrameChunksMax,
    closeTimeout: closeTimeoutMs,
    autoPong: false,
  };
  const server = new WebSocketServer(options);
  server.on("headers", (headers) => headers.push(`${processHeader}: ${process}`));
  return server;
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
