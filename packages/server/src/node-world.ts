/** All that a node has from the world outside of it: time, chance, disk and network. Production's is made here; a simulator has its own. */
import { randomBytes, randomInt } from "node:crypto";
import type { Random } from "@holdfast/raft";
import { openDataDirectory, readMachineBootId } from "@holdfast/storage";
import type { DataDirectory, DataDirectoryOptions } from "@holdfast/storage";
import { createClientListener } from "./client-listener.js";
import type { ClientListenerOptions } from "./client-listener.js";
import { createSystemClock } from "./clock.js";
import { HttpSide } from "./http.js";
import { createMetrics } from "./metrics.js";
import type { Metrics, RejectionReason, TransportFigures } from "./metrics.js";
import type { NodeHost } from "./node-host.js";
import type { HttpParts } from "./node-routes.js";
import type { ClientEvents, Clock, Logger } from "./ports.js";
import type { PeerTransport } from "./transport.js";
import { createWsTransport } from "./ws-transport.js";

/** The door for clients, and for those who ask how the node is. */
export interface NodeListener {
  /** Resolves with the port; rejects with a ListenError. Health and metrics answer from now on. */
  start(): Promise<number>;
  /** From now on clients are let in. */
  open(events: ClientEvents): void;
  /** Nobody new is let in; those who are in are told to go elsewhere. */
  close(): Promise<void>;
  /** Tears everything down at once. */
  abandon(): Promise<void>;
  figures(): TransportFigures;
}

/** What the door asks and tells the node. */
export interface NodeListenerParts extends HttpParts {
  onRejected(reason: RejectionReason): void;
}

/** For one life of one node: a node that starts again has another. */
export interface NodeWorld {
  readonly clock: Clock;
  readonly random: Random;
  readonly transport: PeerTransport;
  readonly metrics: Metrics;
  /** Threads for name look-ups and disk syncs together. */
  readonly threadPoolSize: number;
  /** A text of 32 random hex digits, never the same twice. */
  drawName(): string;
  /** 32 random bytes, never the same twice. */
  drawSeed(): Uint8Array;
  readMachineBootId(): string;
  openDirectory(options: DataDirectoryOptions): Promise<DataDirectory>;
  createListener(options: ClientListenerOptions, parts: NodeListenerParts): NodeListener;
  /** The host is made, and has not started yet. */
  onHost?(host: NodeHost): void;
}

export function createNodeWorld(logger: Logger): NodeWorld {
  const clock = createSystemClock();
  return {
    clock,
    random: { integer: (below) => randomInt(below) },
    transport: createWsTransport({ clock, logger }),
    metrics: createMetrics(clock),
    threadPoolSize: Number(process.env["UV_THREADPOOL_SIZE"] ?? 4),
    drawName: () => randomBytes(16).toString("hex"),
    drawSeed: () => randomBytes(32),
    readMachineBootId,
    openDirectory: openDataDirectory,
    createListener: (options, parts) => {
      const onRejected = (reason: RejectionReason): void => parts.onRejected(reason);
      const http = new HttpSide(options.http, { clock, node: parts, onRejected });
      return createClientListener(options, { clock, logger, http, onRejected });
    },
  };
}
