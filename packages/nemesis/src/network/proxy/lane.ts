/** A listener that stands for a target in the eyes of one viewer: everything that they say to each other goes through it. */
import { connect, createServer } from "node:net";
import type { AddressInfo, Server, Socket } from "node:net";
import { Pipe } from "./pipe.js";
import type { Way } from "./way.js";

export interface LaneOptions {
  readonly listenHost: string;
  readonly targetHost: string;
  readonly targetPort: number;
  /** From the viewer to the target, and back. */
  readonly there: Way;
  readonly back: Way;
}

export class Lane {
  readonly address: string;
  private readonly options: LaneOptions;
  private readonly server: Server;
  private readonly sockets = new Set<Socket>();
  private readonly pairs = new Set<{ readonly dialled: Socket; readonly accepted: Socket }>();

  private constructor(server: Server, options: LaneOptions) {
    this.server = server;
    this.options = options;
    this.address = `${options.listenHost}:${(server.address() as AddressInfo).port}`;
  }

  static async open(options: LaneOptions): Promise<Lane> {
    const server = createServer({ allowHalfOpen: true, pauseOnConnect: true, noDelay: true });
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(0, options.listenHost, resolve);
    });
    const lane = new Lane(server, options);
    server.on("connection", (socket) => lane.onAccepted(socket));
    return lane;
  }

  /** Breaks all connections, seen from both ends. */
  reset(): void {
    for (const socket of this.sockets) socket.resetAndDestroy();
  }

  /** Ends one direction of each connection in order (FIN), as a program does that has no more to say. The other direction stays. */
  halfClose(direction: "there" | "back"): void {
    for (const { dialled, accepted } of this.pairs) (direction === "there" ? dialled : accepted).end();
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.server.close(resolve));
    for (const socket of this.sockets) socket.destroy();
    await closed;
  }

  private onAccepted(accepted: Socket): void {
    this.keep(accepted);
    const { there, back } = this.options;
    let stops: (() => void)[] = [];
    const stop = (): void => {
      for (const each of stops) each();
      stops = [];
    };
    // Its first packet, or the answer to it, is lost while a way is cut. It is sent again until the one who dialled gives up.
    const dial = (): void => {
      if (there.isCut || back.isCut) return;
      stop();
      if (!accepted.destroyed) this.dial(accepted);
    };
    stops = [there.onChange(dial), back.onChange(dial)];
    accepted.once("close", stop);
    dial();
  }

  private dial(accepted: Socket): void {
    const { targetHost, targetPort, there, back } = this.options;
    const dialled = connect({ host: targetHost, port: targetPort, allowHalfOpen: true, noDelay: true });
    this.keep(dialled);
    dialled.once("error", () => undefined);
    const refuse = (): void => {
      accepted.resetAndDestroy();
    };
    dialled.once("close", refuse);
    dialled.once("connect", () => {
      dialled.removeListener("close", refuse);
      const pair = { dialled, accepted };
      this.pairs.add(pair);
      dialled.once("close", () => this.pairs.delete(pair));
      // Both pipes see to their ends themselves.
      new Pipe(accepted, dialled, there);
      new Pipe(dialled, accepted, back);
    });
  }

  private keep(socket: Socket): void {
    this.sockets.add(socket);
    socket.on("error", () => undefined);
    socket.once("close", () => this.sockets.delete(socket));
  }
}
