/** Sockets in memory, between the client and whatever listens at an endpoint. Frames keep their order and take `latencyMs`. */
import type { Socket, SocketEvents, Transport } from "../../src/ports.js";
import type { VirtualClock } from "./virtual-clock.js";

/** The node's end of a socket. */
export interface ServerSocket {
  send(frame: Uint8Array): void;
  close(problem: string): void;
}

export interface Listener {
  /** up: accepts. down: refuses at once. silent: neither answers nor refuses, also on open sockets. */
  reach: "up" | "down" | "silent";
  onOpened(socket: ServerSocket): void;
  onFrame(socket: ServerSocket, frame: Uint8Array): void;
  onClosed(socket: ServerSocket): void;
}

export class VirtualNetwork implements Transport {
  latencyMs = 1;
  /** Frames that clients have sent. */
  frames = 0;
  pings = 0;
  /** False: its sockets can't ping, as a browser's. */
  hasPings = true;
  /** Endpoints dialled, in order. */
  readonly dialled: string[] = [];
  readonly pipes = new Set<Pipe>();
  private readonly clock: VirtualClock;
  private readonly listeners = new Map<string, Listener>();

  constructor(clock: VirtualClock) {
    this.clock = clock;
  }

  listen(endpoint: string, listener: Listener): void {
    this.listeners.set(endpoint, listener);
  }

  /** Sockets that the client has not given up and no node has closed. */
  get socketCount(): number {
    return this.pipes.size;
  }

  open(endpoint: string, events: SocketEvents): Socket {
    this.dialled.push(endpoint);
    const pipe = new Pipe(this.clock, this, this.listeners.get(endpoint) ?? null, events);
    this.pipes.add(pipe);
    pipe.begin();
    return pipe;
  }
}

class Pipe implements Socket {
  private readonly clock: VirtualClock;
  private readonly network: VirtualNetwork;
  private readonly listener: Listener | null;
  private readonly events: SocketEvents;
  private state: "opening" | "open" | "closed" = "opening";
  private readonly server: ServerSocket;

  constructor(clock: VirtualClock, network: VirtualNetwork, listener: Listener | null, events: SocketEvents) {
    this.clock = clock;
    this.network = network;
    this.listener = listener;
    this.events = events;
    this.server = {
      send: (frame) => this.later(() => this.toClient(() => this.events.onFrame(frame))),
      close: (problem) => this.later(() => this.endAtClient(problem)),
    };
  }

  get hasPings(): boolean {
    return this.network.hasPings;
  }

  begin(): void {
    this.later(() => {
      if (this.state !== "opening" || this.listener?.reach === "silent") return;
      if (this.listener === null || this.listener.reach === "down") {
        this.endAtClient("connect ECONNREFUSED");
        return;
      }
      this.state = "open";
      this.listener.onOpened(this.server);
      this.events.onOpened();
    });
  }

  send(frame: Uint8Array): void {
    if (this.state !== "open") return;
    this.network.frames += 1;
    this.later(() => {
      if (this.listener?.reach === "up") this.listener.onFrame(this.server, frame);
    });
  }

  ping(): void {
    if (this.state !== "open") return;
    this.network.pings += 1;
    this.later(() => {
      if (this.listener?.reach === "up") this.later(() => this.toClient(() => this.events.onPong()));
    });
  }

  close(): void {
    this.end();
  }

  terminate(): void {
    this.end();
  }

  private later(run: () => void): void {
    this.clock.setTimer(this.network.latencyMs, run);
  }

  private toClient(run: () => void): void {
    if (this.state === "open" && this.listener?.reach !== "silent") run();
  }

  private endAtClient(problem: string): void {
    if (this.state === "closed") return;
    this.state = "closed";
    this.network.pipes.delete(this);
    this.events.onClosed(problem);
  }

  /** By the client. What it sent before still arrives. */
  private end(): void {
    if (this.state === "closed") return;
    this.state = "closed";
    this.network.pipes.delete(this);
    this.later(() => this.listener?.onClosed(this.server));
  }
}
