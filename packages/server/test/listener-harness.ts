/** A client port for tests, and sockets to it. */
import { once } from "node:events";
import { connect } from "node:net";
import type { Socket } from "node:net";
import { limits } from "@holdfast/wire";
import type { ClientMessage, ServerMessage } from "@holdfast/wire";
import { WebSocket } from "ws";
import type { ClientOptions } from "ws";
import { createClientListener } from "../src/client-listener.js";
import type { ClientListener, ClientListenerOptions } from "../src/client-listener.js";
import { createSystemClock } from "../src/clock.js";
import { HttpSide } from "../src/http.js";
import type { RejectionReason } from "../src/metrics.js";
import type { HttpParts } from "../src/node-routes.js";
import type { ClientConnection } from "../src/ports.js";
import { memoryLogger, until } from "./helpers.js";

export interface Recorded {
  readonly listener: ClientListener;
  readonly url: string;
  readonly port: number;
  readonly opened: ClientConnection[];
  readonly closed: ClientConnection[];
  readonly messages: { readonly connection: ClientConnection; readonly message: ClientMessage }[];
  readonly rejected: RejectionReason[];
  readonly log: ReturnType<typeof memoryLogger>;
}

const listeners: ClientListener[] = [];
const sockets: WebSocket[] = [];

/** Ends everything that a test has started. */
export async function endAll(): Promise<void> {
  for (const socket of sockets.splice(0)) socket.terminate();
  await Promise.all(listeners.splice(0).map((listener) => listener.close()));
}

export async function start(changes: Partial<ClientListenerOptions> = {}, isOpen = true): Promise<Recorded> {
  const log = memoryLogger();
  const rejected: RejectionReason[] = [];
  const http = {
    origins: ["https://tool.example"],
    hosts: ["locks.example"],
    isLoopbackOnly: true,
    requestsMax: 100,
    bufferedBytesMax: limits.clientBufferedBytesMax,
  };
  const options: ClientListenerOptions = {
    listen: { host: "127.0.0.1", port: 0 },
    http,
    connectionsMax: 100,
    pendingUpgradesMax: 50,
    bufferedBytesSlow: limits.clientBufferedBytesSlow,
    bufferedBytesMax: limits.clientBufferedBytesMax,
    headMs: 5_000,
    helloMs: 5_000,
    pingMs: 5_000,
    ...changes,
  };
  const clock = createSystemClock();
  const onRejected = (reason: RejectionReason): number => rejected.push(reason);
  const side = new HttpSide(options.http, { clock, node: silentNode, onRejected });
  const listener = createClientListener(options, { clock, logger: log, http: side, onRejected });
  listeners.push(listener);
  const port = await listener.start();
  const recorded: Recorded = {
    listener,
    url: `ws://127.0.0.1:${port}/`,
    port,
    opened: [],
    closed: [],
    messages: [],
    rejected,
    log,
  };
  if (isOpen) {
    listener.open({
      onOpened: (connection) => recorded.opened.push(connection),
      onClosed: (connection) => recorded.closed.push(connection),
      onFrame: (connection, frame) => {
        for (const message of frame.messages()) recorded.messages.push({ connection, message });
      },
    });
  }
  return recorded;
}

/** A node that is up and tells nothing. */
const silentNode: HttpParts = {
  health: () => ({ isLive: true, isReady: true, problem: null }),
  status: () => null,
  identity: () => null,
  cluster: () => null,
  keys: () => null,
  clock: () => ({ boot: 1, monotonicMs: 0 }),
  checkup: () => {
    throw new Error("not asked");
  },
  metrics: () => Promise.resolve({ contentType: "text/plain", text: "" }),
  backup: () => Promise.reject(new Error("not asked")),
  hasSession: () => false,
};

export const hello: ClientMessage = {
  kind: "hello",
  protocol: 1,
  features: [],
  clusterId: null,
  seenIndex: 0,
  info: "test",
};

export async function join(url: string, options: ClientOptions = {}): Promise<WebSocket> {
  const socket = new WebSocket(url, { perMessageDeflate: false, ...options });
  sockets.push(socket);
  socket.on("error", () => undefined);
  socket.on("close", (code, reason) => ends.set(socket, { code, reason: reason.toString() }));
  await once(socket, "open");
  return socket;
}

const ends = new WeakMap<WebSocket, { code: number; reason: string }>();

/** Resolves with the close code and reason, also of a socket that is closed already. */
export async function closing(socket: WebSocket): Promise<{ code: number; reason: string } | undefined> {
  await until(() => ends.has(socket), "the socket is closed");
  return ends.get(socket);
}

export async function rawSocket(port: number): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => undefined);
  await once(socket, "connect");
  return socket;
}

export function leaderMessage(n: number, bytes = 0): ServerMessage {
  return { kind: "leader", leader: { id: `n${n}`, client: `${"x".repeat(Math.min(bytes, 200))}:1` } };
}
