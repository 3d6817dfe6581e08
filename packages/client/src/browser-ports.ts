/**
 * The ports in a browser: its clocks, timers, random bytes and native WebSocket. Its performance.now() stands still while some systems are
 * suspended, and its timers are late in hidden tabs (docs/client.md, "Browsers"): the lease is judged by the wall clock too, at every look.
 */
import { limits } from "@holdfast/wire";
import { PiecewiseTimer } from "./piecewise-timer.js";
import type { ClientPorts, Clock, Random, Socket, SocketEvents, Transport } from "./ports.js";
import { wallBackedMs } from "./wall-clock.js";

const handshakeMs = 2_000;

/** The part of a browser's WebSocket that is used: this package is compiled without the types of a browser. */
export interface BrowserWebSocket {
  binaryType: string;
  readonly bufferedAmount: number;
  readonly readyState: number;
  onopen: (() => void) | null;
  onmessage: ((event: { readonly data: unknown }) => void) | null;
  onclose: ((event: { readonly code: number }) => void) | null;
  send(bytes: Uint8Array): void;
  close(code?: number): void;
}

export type NewWebSocket = (url: string) => BrowserWebSocket;

interface BrowserGlobals {
  readonly WebSocket: new (url: string) => BrowserWebSocket;
}

/** WebSocket.OPEN */
const openState = 1;

export function createBrowserPorts(
  newWebSocket: NewWebSocket = (url) => new (globalThis as unknown as BrowserGlobals).WebSocket(url),
): ClientPorts {
  return { clock: createClock(), random, transport: transportBy(newWebSocket) };
}

const random: Random = {
  fraction: () => Math.random(),
  key: () => {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  },
};

function createClock(): Clock {
  const monotonicMs = (): number => performance.now();
  return {
    monotonicMs,
    suspendAwareMs: wallBackedMs(() => Date.now(), monotonicMs),
    setTimer: (delayMs, run) => new PiecewiseTimer(delayMs, run),
    defer: (run) => queueMicrotask(run),
    // A page lives for as long as its user keeps it.
    keepProcess: () => undefined,
  };
}

function transportBy(newWebSocket: NewWebSocket): Transport {
  return { open: (endpoint, events) => new NativeSocket(`ws://${endpoint}`, newWebSocket, events) };
}

class NativeSocket implements Socket {
  /** A page can't send pings, and isn't shown pongs. */
  readonly hasPings = false;
  private readonly websocket: BrowserWebSocket | null;
  private readonly handshake: PiecewiseTimer;
  private events: SocketEvents | null;

  constructor(url: string, newWebSocket: NewWebSocket, events: SocketEvents) {
    this.events = events;
    // A browser's own limit is minutes; no event tells why a socket fails, for a page must not scan its user's network.
    this.handshake = new PiecewiseTimer(handshakeMs, () => this.fail(`no handshake within ${handshakeMs} ms`));
    this.websocket = this.begin(url, newWebSocket);
  }

  send(frame: Uint8Array): void {
    const { websocket } = this;
    if (websocket === null || websocket.readyState !== openState) return;
    if (websocket.bufferedAmount + frame.byteLength <= limits.clientBufferedBytesMax) websocket.send(frame);
    else queueMicrotask(() => this.fail("reads too slowly"));
  }

  ping(): void {}

  close(): void {
    this.end();
  }

  /** A browser's sockets have no end by force; what still comes is not listened to. */
  terminate(): void {
    this.end();
  }

  private begin(url: string, newWebSocket: NewWebSocket): BrowserWebSocket | null {
    let websocket: BrowserWebSocket;
    try {
      websocket = newWebSocket(url);
    } catch (error) {
      // What is no URL; and from a page of https, whose browser refuses ws to all but the machine itself.
      const problem = error instanceof Error ? error.message : "unknown error";
      queueMicrotask(() => this.fail(`can't be opened: ${problem}`));
      return null;
    }
    websocket.binaryType = "arraybuffer";
    websocket.onopen = () => {
      this.handshake.cancel();
      this.events?.onOpened();
    };
    websocket.onmessage = ({ data }) => this.onMessage(data);
    websocket.onclose = ({ code }) => this.fail(`closed with code ${code}`);
    return websocket;
  }

  private onMessage(data: unknown): void {
    if (!(data instanceof ArrayBuffer)) this.fail("sent text where frames are due");
    else if (data.byteLength > limits.serverFrameBytesMax) this.fail("sent a frame that is too long");
    else this.events?.onFrame(new Uint8Array(data));
  }

  private fail(problem: string): void {
    const { events } = this;
    this.end();
    events?.onClosed(problem);
  }

  private end(): void {
    this.events = null;
    this.handshake.cancel();
    if (this.websocket === null) return;
    this.websocket.onopen = null;
    this.websocket.onmessage = null;
    this.websocket.onclose = null;
    this.websocket.close();
  }
}
