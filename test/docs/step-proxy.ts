/** A TCP proxy between a process and what it talks to that acts when the n-th message passes: for a process that is hurt at each step. */
import { once } from "node:events";
import { createServer, connect } from "node:net";
import type { AddressInfo, Server, Socket } from "node:net";

/** Counts over all proxies of one process. A step is one chunk in either direction, about one message of a request and answer protocol. */
export class Steps {
  passed = 0;
  hasActed = false;
  readonly #actAt: number;
  readonly #act: () => void;

  /** `act` is called once, when step `actAt` is on its way and before it is handed on. */
  constructor(actAt: number = Number.POSITIVE_INFINITY, act: () => void = () => {}) {
    this.#actAt = actAt;
    this.#act = act;
  }

  pass(): void {
    this.passed += 1;
    if (this.passed !== this.#actAt) return;
    this.hasActed = true;
    this.#act();
  }
}

export class StepProxy {
  readonly port: number;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(server: Server) {
    this.#server = server;
    this.port = (server.address() as AddressInfo).port;
  }

  static async start(targetPort: number, steps: Steps): Promise<StepProxy> {
    const server = createServer();
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const proxy = new StepProxy(server);
    server.on("connection", (client) => proxy.#join(client, connect(targetPort, "127.0.0.1"), steps));
    return proxy;
  }

  #join(client: Socket, target: Socket, steps: Steps): void {
    for (const [from, to] of [
      [client, target],
      [target, client],
    ] as const) {
      this.#sockets.add(from);
      from.setNoDelay(true);
      from.on("data", (chunk) => {
        steps.pass();
        if (!to.destroyed) to.write(chunk);
      });
      from.on("error", () => to.destroy());
      from.on("end", () => to.end());
      from.on("close", () => {
        this.#sockets.delete(from);
        to.destroy();
      });
    }
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
