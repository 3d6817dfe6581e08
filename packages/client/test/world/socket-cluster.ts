/** The fake nodes behind real websockets on loopback. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { WebSocketServer } from "ws";
import type { WebSocket } from "ws";
import { createNodePorts } from "../../src/node-ports.js";
import { FakeCluster } from "./fake-cluster.js";
import type { ServerSocket } from "./virtual-network.js";

export class SocketCluster {
  readonly cluster: FakeCluster;
  private readonly servers: readonly WebSocketServer[];

  private constructor(cluster: FakeCluster, servers: readonly WebSocketServer[]) {
    this.cluster = cluster;
    this.servers = servers;
  }

  static async start(): Promise<SocketCluster> {
    const servers = Array.from({ length: 3 }, () => new WebSocketServer({ host: "127.0.0.1", port: 0 }));
    await Promise.all(servers.map((server) => once(server, "listening")));
    const endpoints = servers.map((server) => `127.0.0.1:${portOf(server)}`);
    const cluster = new FakeCluster(createNodePorts().clock, endpoints);
    for (const [at, server] of servers.entries()) serve(server, cluster, at);
    return new SocketCluster(cluster, servers);
  }

  /** As a killed process: sockets are reset, the port refuses. */
  kill(at: number): void {
    const server = this.servers[at];
    const node = this.cluster.nodes[at];
    assert.ok(server !== undefined && node !== undefined);
    this.cluster.kill(node.id);
    for (const websocket of server.clients) websocket.terminate();
    server.close();
  }

  /** Every open websocket of node `at`. */
  sockets(at: number): readonly WebSocket[] {
    return [...(this.servers[at]?.clients ?? [])];
  }

  stop(): void {
    for (const server of this.servers) {
      for (const websocket of server.clients) websocket.terminate();
      server.close();
    }
  }
}

function serve(server: WebSocketServer, cluster: FakeCluster, at: number): void {
  const node = cluster.nodes[at];
  assert.ok(node !== undefined);
  server.on("connection", (websocket) => {
    const socket: ServerSocket = {
      send: (frame) => websocket.send(frame, () => undefined),
      close: () => websocket.terminate(),
    };
    websocket.on("error", () => undefined);
    websocket.on("message", (data) => node.onFrame(socket, data as Uint8Array));
    websocket.on("close", () => node.onClosed(socket));
  });
}

function portOf(server: WebSocketServer): number {
  const address = server.address();
  assert.ok(address !== null && typeof address === "object");
  return address.port;
}
