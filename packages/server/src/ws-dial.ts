/** A call to a peer over ws: one websocket, until its handshake is done or has come to nothing. */
import type { Socket } from "node:net";
import { limits } from "@holdfast/wire";
import { WebSocket } from "ws";
import type { CachedLookup } from "./cached-lookup.js";
import type { Clock } from "./ports.js";
import type { Dial, DialEvents, DialRequest } from "./transport.js";
import { attachTo, closeTimeoutMs } from "./web-socket.js";
import type { WsClientOptions } from "./web-socket.js";

/** Random names in the handshake: which process calls, and which of its calls this is. */
export const processHeader = "holdfast-process";
export const dialHeader = "holdfast-dial";

export interface WsDialParts {
  readonly clock: Clock;
  readonly lookup: CachedLookup;
}

const socketOptions = {
  perMessageDeflate: false,
  maxPayload: limits.peerFrameBytesMax,
  maxFragments: limits.frameFragmentsMax,
  maxBufferedChunks: limits.peerFrameChunksMax,
  closeTimeout: closeTimeoutMs,
  autoPong: false,
  // Masks protect proxies on the web from crafted bytes. Between peers they only cost time: a zero mask is skipped by ws.
  generateMask: (mask: Buffer) => {
    mask.fill(0);
  },
} as const;

export class WsDial implements Dial {
  private readonly parts: WsDialParts;
  private readonly events: DialEvents;
  private readonly socket: WebSocket;
  private readonly hostname: string;
  private kind: "connectionRefused" | "dialFailed" = "dialFailed";
  private problem = "";
  private peerProcess = "";
  /** The TCP socket below, once the other side has agreed to the upgrade. */
  private raw: Socket | null = null;
  private isOver = false;

  constructor(request: DialRequest, parts: WsDialParts, events: DialEvents) {
    this.parts = parts;
    this.events = events;
    const url = `ws://${request.address}/peer/${request.lane}`;
    this.hostname = new URL(url).hostname;
    const options: WsClientOptions = {
      ...socketOptions,
      handshakeTimeout: request.handshakeMs,
      headers: headersFor(request),
      lookup: parts.lookup.lookup,
    };
    this.socket = new WebSocket(url, options);
    this.listen();
  }

  cancel(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.socket.terminate();
  }

  private listen(): void {
    const { socket } = this;
    socket.on("error", (error) => this.onError(error));
    socket.on("upgrade", (response) => {
      this.peerProcess = String(response.headers[processHeader] ?? "");
      this.raw = response.socket;
    });
    socket.on("unexpected-response", (request, response) => {
      this.problem = `answered with HTTP ${response.statusCode}`;
      if (response.statusCode === 401 && !this.isOver) this.events.onUnauthorized();
      response.resume();
      request.destroy();
      socket.terminate();
    });
    socket.on("close", () => {
      if (this.isOver) return;
      this.isOver = true;
      this.events.onFailed(this.kind, this.problem);
    });
    socket.on("open", () => {
      if (this.isOver || this.raw === null) return;
      this.isOver = true;
      this.events.onOpened(this.peerProcess, attachTo(socket, this.raw, this.parts.clock));
    });
  }

  private onError(error: NodeJS.ErrnoException): void {
    if (this.isOver) return;
    this.problem = error.message === "" ? (error.code ?? "failed") : error.message;
    if (error.code === "ECONNREFUSED") this.kind = "connectionRefused";
    else this.parts.lookup.forget(this.hostname);
  }
}

function headersFor({ process, dial, secret }: DialRequest): Record<string, string> {
  const headers: Record<string, string> = { [processHeader]: process, [dialHeader]: String(dial) };
  if (secret !== null) headers["authorization"] = `Bearer ${secret}`;
  return headers;
}
