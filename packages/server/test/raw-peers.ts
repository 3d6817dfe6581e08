/** Peers that a test plays by hand, against real links. */
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { decodePeerFrame, encodePeerFrame, limits } from "@holdfast/wire";
import type { PeerFrame, PeerHello } from "@holdfast/wire";
import { WebSocket, WebSocketServer } from "ws";
import { allFormed, clusterId, instanceOf, noPromises, recordedLinks } from "./peer-harness.js";
import type { LinkSetup, RecordedLinks } from "./peer-harness.js";

const running: RecordedLinks[] = [];
const sockets: WebSocket[] = [];
const servers: WebSocketServer[] = [];

/** Ends everything that a test has started. */
export async function endAll(): Promise<void> {
  for (const socket of sockets.splice(0)) socket.terminate();
  closeServers();
  await Promise.all(running.splice(0).map(({ links }) => links.close()));
}

/** As a process that dies: the listener and all sockets at once. */
export function closeServers(): void {
  for (const server of servers.splice(0)) {
    server.close();
    for (const socket of server.clients) socket.terminate();
  }
}

export async function start(setup: LinkSetup, facts = allFormed, durable = noPromises): Promise<RecordedLinks> {
  const recorded = recordedLinks(setup);
  running.push(recorded);
  recorded.links.becomeFormed(facts, durable);
  await recorded.links.start();
  return recorded;
}

export async function startUnformed(setup: LinkSetup): Promise<RecordedLinks> {
  const recorded = recordedLinks(setup);
  running.push(recorded);
  await recorded.links.start();
  return recorded;
}

export function helloFrom(from: string, changes: Partial<PeerHello> = {}): PeerHello {
  return {
    kind: "hello",
    protocol: limits.protocolVersion,
    cluster: "test",
    from,
    to: "n1",
    instance: instanceOf(from),
    clusterId,
    boot: 1,
    term: 0,
    last: noPromises.last,
    versions: { min: 1, max: 1 },
    ...changes,
  };
}

export interface RawCaller {
  readonly socket: WebSocket;
  readonly frames: PeerFrame[];
  readonly closed: { code: number | null };
  send(frame: PeerFrame): void;
}

/** A caller that a test plays by hand. */
export async function call(port: number, dial: number, lane = "control", process = "f".repeat(32)): Promise<RawCaller> {
  const headers = { "holdfast-process": process, "holdfast-dial": String(dial) };
  const socket = new WebSocket(`ws://127.0.0.1:${port}/peer/${lane}`, { headers, perMessageDeflate: false });
  sockets.push(socket);
  const frames: PeerFrame[] = [];
  const closed: { code: number | null } = { code: null };
  socket.on("error", () => undefined);
  socket.on("message", (data) => frames.push(decodePeerFrame(data as Buffer)));
  socket.on("close", (code) => (closed.code = code));
  await once(socket, "open");
  return { socket, frames, closed, send: (frame) => socket.send(encodePeerFrame(frame)) };
}

/** A listener that a test plays by hand: says the hello it is given on every lane. */
export async function answerAs(
  hello: PeerHello,
  onLink: (lane: string, socket: WebSocket) => void,
  at = 0,
): Promise<number> {
  const server = new WebSocketServer({ port: at, host: "127.0.0.1", perMessageDeflate: false });
  servers.push(server);
  server.on("headers", (headers) => headers.push(`holdfast-process: ${"e".repeat(32)}`));
  server.on("connection", (socket, request) => {
    socket.on("error", () => undefined);
    socket.once("message", () => {
      socket.send(encodePeerFrame(hello));
      onLink((request.url ?? "").replace("/peer/", ""), socket);
    });
  });
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}
