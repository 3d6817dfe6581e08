/** Processes on a virtual network, with sockets between them, for the tests of the network. */
import type { Attach, FrameSocket } from "@holdfast/server/parts";
import { createClientDoor, createPeerTransport, Network, usualNetwork } from "../src/network/index.js";
import type { NetworkOptions } from "../src/network/index.js";
import { SimulatedProcess } from "../src/process.js";
import { streamOf } from "../src/random.js";
import { Scheduler } from "../src/scheduler.js";
import { TraceHash } from "../src/trace-hash.js";

export const peerPort = 7201;

/** What a socket's owner was told, as short texts with the time. */
export class Heard {
  readonly messages: number[] = [];
  readonly timesMs: number[] = [];
  closed: string | null | undefined = undefined;
  closedMs = Number.NaN;
  socket: FrameSocket | null = null;
}

export class NetworkFixture {
  readonly hash: TraceHash = new TraceHash();
  readonly scheduler: Scheduler;
  readonly network: Network;
  readonly #processes = new Map<string, SimulatedProcess>();
  /** Sockets that were taken in, in their order, by who took them. */
  readonly taken = new Map<string, Heard[]>();

  constructor(options: Partial<NetworkOptions> = {}, seed = 1) {
    this.scheduler = new Scheduler(streamOf(seed, "scheduler"), this.hash);
    const random = streamOf(seed, "network");
    this.network = new Network({ ...usualNetwork, ...options }, { scheduler: this.scheduler, random, hash: this.hash });
    this.#seed = seed;
  }

  readonly #seed: number;

  get nowMs(): number {
    return this.scheduler.nowMs;
  }

  /** The process that runs there now, made when it is named first or after its death. */
  process(name: string): SimulatedProcess {
    let process = this.#processes.get(name);
    if (process === undefined || process.isKilled) {
      const random = streamOf(this.#seed, `process ${name}`);
      process = new SimulatedProcess(
        { id: name, rate: 1 },
        { scheduler: this.scheduler, random, onEvent: () => undefined },
      );
      this.#processes.set(name, process);
    }
    return process;
  }

  kill(name: string, kind: "process" | "machine"): void {
    const process = this.process(name);
    process.kill();
    this.network.place(name).onProcessKilled(process, kind);
  }

  async pass(ms: number): Promise<void> {
    await this.scheduler.run(this.nowMs + ms);
  }

  /** Takes peers' calls. */
  listen(name: string, port: number = peerPort): Promise<number> {
    const transport = createPeerTransport(this.network, name, this.process(name));
    const acceptor = transport.createAcceptor(
      { process: `process of ${name}`, secret: null, socketsMax: 8 },
      (_, attach) => this.#take(name, attach),
    );
    return acceptor.listen({ host: name, port });
  }

  listenForClients(name: string, port: number): Promise<number> {
    const door = createClientDoor(this.network, name, this.process(name), {
      judge: () => null,
      onCall: (_, attach) => this.#take(name, attach),
    });
    return door.listen({ host: name, port });
  }

  /** The n-th socket that was taken there. */
  takenAt(name: string, position = 0): Heard & { socket: FrameSocket } {
    return opened(this.taken.get(name)?.[position]);
  }

  dial(from: string, to: string, handshakeMs = 1_000): Heard & { failed: string | null } {
    const heard = Object.assign(new Heard(), { failed: null as string | null });
    const request = {
      address: `${to}:${peerPort}`,
      lane: "data" as const,
      process: from,
      dial: 1,
      secret: null,
      handshakeMs,
    };
    createPeerTransport(this.network, from, this.process(from)).dial(request, {
      onOpened: (_, attach) => this.#attach(heard, attach),
      onUnauthorized: () => undefined,
      onFailed: (kind) => void (heard.failed = kind),
    });
    return heard;
  }

  /** A socket from one to the other, open at both ends. */
  async link(
    from: string,
    to: string,
  ): Promise<{ near: Heard & { socket: FrameSocket }; far: Heard & { socket: FrameSocket } }> {
    if (this.network.place(to).listenerAt(peerPort) === null) void this.listen(to);
    const heard = this.dial(from, to);
    await this.scheduler.run(this.nowMs + 1_000, () => heard.socket !== null);
    return { near: opened(heard), far: this.takenAt(to, (this.taken.get(to)?.length ?? 0) - 1) };
  }

  #take(name: string, attach: Attach): void {
    const heard = new Heard();
    this.taken.set(name, [...(this.taken.get(name) ?? []), heard]);
    this.#attach(heard, attach);
  }

  #attach(heard: Heard, attach: Attach): void {
    heard.socket = attach({
      onMessage: (bytes) => {
        heard.messages.push(bytes[0] as number);
        heard.timesMs.push(this.nowMs);
      },
      onClosed: (problem) => {
        heard.closed = problem;
        heard.closedMs = this.nowMs;
      },
    });
  }
}

function opened(heard: Heard | undefined): Heard & { socket: FrameSocket } {
  if (heard === undefined || heard.socket === null) throw new Error("no socket is open");
  return heard as Heard & { socket: FrameSocket };
}

/** A frame that is told by its first byte. */
export function frame(mark: number, length = 64): Uint8Array {
  return new Uint8Array(length).fill(mark, 0, 1);
}

export function marks(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, at) => from + at);
}
