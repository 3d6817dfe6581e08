/** A TCP proxy that a test can cut, one direction at a time: bytes are swallowed, nobody is told. */
import { createServer, connect } from "node:net";
import type { AddressInfo, Server, Socket } from "node:net";

export type Direction = "toServer" | "toClient";

export class TcpProxy {
  readonly port: number;
  /** Bytes that were swallowed, by direction: a cut that swallowed nothing has tested nothing. */
  readonly swallowed: Record<Direction, number> = { toServer: 0, toClient: 0 };
  private readonly server: Server;
  private readonly targetPort: number;
  private readonly cuts = new Set<Direction>();
  private readonly sockets = new Set<Socket>();

  private constructor(server: Server, targetPort: number) {
    this.server = server;
    this.targetPort = targetPort;
    this.port = (server.address() as AddressInfo).port;
  }

  static async start(targetPort: number): Promise<TcpProxy> {
    const server = createServer();
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(0, "127.0.0.1", resolve);
    });
    const proxy = new TcpProxy(server, targetPort);
    server.on("connection", (client) => proxy.onConnection(client));
    return proxy;
  }

  get endpoint(): string {
    return `127.0.0.1:${this.port}`;
  }

  /** From now on bytes in this direction vanish; connections stay open. */
  cut(...directions: Direction[]): void {
    for (const direction of directions) this.cuts.add(direction);
  }

  heal(): void {
    this.cuts.clear();
  }

  /** Ends the connections there are, with a reset. */
  reset(): void {
    for (const socket of this.sockets) socket.resetAndDestroy();
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private onConnection(client: Socket): void {
    const server = connect(this.targetPort, "127.0.0.1");
    client.setNoDelay(true);
    server.setNoDelay(true);
    this.pipe(client, server, "toServer");
    this.pipe(server, client, "toClient");
  }

  private pipe(from: Socket, to: Socket, direction: Direction): void {
    this.sockets.add(from);
    from.on("data", (data) => {
      if (this.cuts.has(direction)) this.swallowed[direction] += data.length;
      else if (!to.destroyed) to.write(data);
    });
    from.on("error", () => to.destroy());
    from.on("end", () => to.end());
    from.on("close", () => {
      this.sockets.delete(from);
      to.destroy();
    });
  }
}
