/** The production ports: Node's clocks, timers and random bytes, and websockets by ws. */
import { randomBytes } from "node:crypto";
import { createConnection } from "node:net";
import type { NetConnectOpts } from "node:net";
import { uptime } from "node:os";
import { performance } from "node:perf_hooks";
import { limits } from "@holdfast/wire";
import { WebSocket } from "ws";
import type { ClientOptions } from "ws";
import { PiecewiseTimer, timerMsMax } from "./piecewise-timer.js";
import type { ClientPorts, Clock, Random, Socket, SocketEvents, Transport } from "./ports.js";
import { wallBackedMs } from "./wall-clock.js";

const handshakeMs = 2_000;
/** After it an orderly close is forced. */
const closeMs = 500;

export function createNodePorts(): ClientPorts {
  return { clock: createClock(), random, transport };
}

const random: Random = {
  fraction: () => Math.random(),
  key: () => randomBytes(16).toString("hex"),
};

function createClock(): Clock {
  // One timer that never fires serves the whole client: it holds the process while it is referenced.
  let keeper: NodeJS.Timeout | null = null;
  return {
    monotonicMs: () => performance.now(),
    suspendAwareMs: shareLooks(suspendAwareClock(), () => performance.now()),
    setTimer: (delayMs, run) => new PiecewiseTimer(delayMs, run),
    defer: (run) => queueMicrotask(run),
    keepProcess: (isKept) => {
      if (!isKept) keeper?.unref();
      else if (keeper === null) keeper = setInterval(() => undefined, timerMsMax);
      else keeper.ref();
    },
  };
}

/**
 * Node's performance.now() stands still while Linux and Windows are suspended; os.uptime() doesn't (in steps of 10 ms). On macOS
 * performance.now() runs through a suspend, and os.uptime() has steps of a second.
 */
function suspendAwareClock(): () => number {
  if (process.platform === "darwin") return () => performance.now();
  try {
    uptime();
    return () => uptime() * 1_000;
  } catch {
    // Some sandboxes hide the uptime.
    return wallBackedMs(
      () => Date.now(),
      () => performance.now(),
    );
  }
}

/** Within the margin of a lease, and below the steps of the clock. */
const sharedLookMs = 1;

/**
 * Looks at a clock that follow one another before anything else runs, and within a millisecond, share one: os.uptime() reads a file, and a
 * frame of answers makes hundreds of looks. A suspend right between two of them is like one right after the second, which no look can see.
 */
export function shareLooks(lookMs: () => number, monotonicMs: () => number): () => number {
  let seen: { readonly ms: number; readonly atMs: number } | null = null;
  const forget = (): void => {
    seen = null;
  };
  return () => {
    const atMs = monotonicMs();
    if (seen !== null && atMs - seen.atMs < sharedLookMs) return seen.ms;
    if (seen === null) queueMicrotask(forget);
    seen = { ms: lookMs(), atMs };
    return seen.ms;
  };
}

const transport: Transport = {
  open: (endpoint, events) => {
    try {
      return new WebsocketSocket(endpoint, events);
    } catch (error) {
      // ws throws for what is no URL; a node may name any text as another's address.
      return new DeadSocket(events, `not an address: ${error instanceof Error ? error.message : "unknown error"}`);
    }
  },
};

/** Of an address that none can be opened to. */
class DeadSocket implements Socket {
  private events: SocketEvents | null;

  constructor(events: SocketEvents, problem: string) {
    this.events = events;
    queueMicrotask(() => this.events?.onClosed(problem));
  }

  send(): void {}

  ping(): void {}

  close(): void {
    this.events = null;
  }

  terminate(): void {
    this.events = null;
  }
}

/** The types of ws 8.18 lack these limits of ws 8.23. */
interface SocketOptions extends ClientOptions {
  readonly maxFragments: number;
  readonly maxBufferedChunks: number;
  readonly closeTimeout: number;
}

const socketOptions: SocketOptions = {
  perMessageDeflate: false,
  followRedirects: false,
  handshakeTimeout: handshakeMs,
  maxPayload: limits.serverFrameBytesMax,
  maxFragments: limits.frameFragmentsMax,
  // A frame of 4 MiB is about 2,900 TCP segments.
  maxBufferedChunks: limits.clientFrameChunksMax,
  closeTimeout: 2 * closeMs,
  // Sockets never keep the process alive; a caller who waits does, through keepProcess.
  createConnection: (options) => createConnection(options as NetConnectOpts).unref(),
};

class WebsocketSocket implements Socket {
  private readonly websocket: WebSocket;
  private events: SocketEvents | null;
  private problem: string | null = null;

  constructor(endpoint: string, events: SocketEvents) {
    this.events = events;
    const websocket = new WebSocket(`ws://${endpoint}`, socketOptions);
    this.websocket = websocket;
    // ws emits it for every failure; without a listener the process would die.
    websocket.on("error", (error) => {
      this.problem ??= error.message === "" ? error.name : error.message;
    });
    websocket.on("open", () => this.events?.onOpened());
    websocket.on("message", (data, isBinary) => this.onMessage(data, isBinary));
    websocket.on("pong", () => this.events?.onPong());
    websocket.on("close", (code) => this.onClose(code));
  }

  send(frame: Uint8Array): void {
    const { websocket } = this;
    if (websocket.readyState !== WebSocket.OPEN) return;
    if (websocket.bufferedAmount + frame.byteLength > limits.clientBufferedBytesMax) {
      this.problem ??= "reads too slowly";
      websocket.terminate();
      return;
    }
    websocket.send(frame, ignoreError);
  }

  ping(): void {
    if (this.websocket.readyState === WebSocket.OPEN) this.websocket.ping(undefined, undefined, ignoreError);
  }

  close(): void {
    this.events = null;
    if (this.websocket.readyState !== WebSocket.OPEN) {
      this.websocket.terminate();
      return;
    }
    this.websocket.close(1000);
    setTimeout(() => this.websocket.terminate(), closeMs).unref();
  }

  terminate(): void {
    this.events = null;
    this.websocket.terminate();
  }

  private onMessage(data: unknown, isBinary: boolean): void {
    if (isBinary && data instanceof Uint8Array) this.events?.onFrame(data);
    else if (this.events !== null) {
      this.problem ??= "sent text where frames are due";
      this.websocket.terminate();
    }
  }

  private onClose(code: number): void {
    const { events } = this;
    this.events = null;
    events?.onClosed(this.problem ?? `closed with code ${code}`);
  }
}

/** A failed send comes as "error" and "close" too; ws throws or drops without a callback. */
function ignoreError(): void {}
