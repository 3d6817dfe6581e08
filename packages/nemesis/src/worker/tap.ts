/**
 * Between the client library and its sockets: leads each address to the worker's own way to that node, and tells the history what the library
 * and the cluster say to each other. An acquire bears the number of its call in its info, so that what is sent for it can be told.
 */
import type { Grant, Outcome } from "@holdfast/checker";
import type { Socket, SocketEvents, Transport } from "@holdfast/client";
import { decodeClientFrame, decodeCommand, decodeServerFrame } from "@holdfast/wire";
import type { ClientMessage, ServerMessage } from "@holdfast/wire";
import type { Reporter } from "./reporter.js";

const infoPrefix = "call ";

/** The info of an acquire that serves this call. */
export function infoFor(call: number): string {
  return `${infoPrefix}${call}`;
}

function callIn(info: string): number | null {
  return info.startsWith(infoPrefix) ? Number(info.slice(infoPrefix.length)) : null;
}

export interface Hold {
  readonly session: number;
  readonly request: number;
}

export interface TapEvents {
  /** The library has heard what may have renewed its session. */
  onRenewed(): void;
  /** The call that a release of what `acquire` got serves, if there is one. */
  releaseOf(acquire: number): number | null;
}

/** At the other end of a socket: its own word, once it has been heard. */
interface Peer {
  node: string | null;
}

type NumberedCommand = Extract<ReturnType<typeof decodeCommand>, { readonly request: number }>;

export class Tap implements Transport {
  private readonly client: string;
  private readonly transport: Transport;
  private readonly addresses: Readonly<Record<string, string>>;
  private readonly reporter: Reporter;
  private readonly events: TapEvents;
  /** "session request" -> call. */
  private readonly calls = new Map<string, number>();
  /** Call -> its newest acquire: an older session's may be granted too, and the library wants it no more. */
  private readonly asked = new Map<number, string>();
  private readonly holds = new Map<number, Hold & { readonly grants: readonly Grant[] }>();
  private readonly sent = new Set<number>();
  private readonly opened = new Set<number>();
  /** Over, by the word of the cluster in the frame that is being read. */
  private endedByCluster = new Set<number>();

  constructor(
    client: string,
    parts: { transport: Transport; addresses: Readonly<Record<string, string>>; reporter: Reporter; events: TapEvents },
  ) {
    this.client = client;
    this.transport = parts.transport;
    this.addresses = parts.addresses;
    this.reporter = parts.reporter;
    this.events = parts.events;
  }

  open(endpoint: string, events: SocketEvents): Socket {
    const peer: Peer = { node: null };
    const socket = this.transport.open(this.addresses[endpoint] ?? endpoint, {
      onOpened: () => events.onOpened(),
      onFrame: (frame) => this.onFrame(frame, events, peer),
      onPong: () => events.onPong(),
      onClosed: (problem) => events.onClosed(problem),
    });
    return {
      send: (frame) => {
        for (const message of decodeClientFrame(frame)) this.onSaid(message);
        socket.send(frame);
      },
      ping: () => socket.ping(),
      close: () => socket.close(),
      terminate: () => socket.terminate(),
    };
  }

  /** The hold that this call got, if the cluster has told of this token. */
  holdOf(call: number, token: number): Hold | null {
    const hold = this.holds.get(call);
    return hold?.grants[0]?.token === token ? { session: hold.session, request: hold.request } : null;
  }

  wasSent(call: number): boolean {
    return this.sent.has(call);
  }

  onSessionEnded(session: number, reason: string): void {
    const by = this.endedByCluster.has(session) ? "cluster" : "client";
    this.reporter.event({ kind: "sessionEnded", client: this.client, session, reason, by });
  }

  private onSaid(message: ClientMessage): void {
    const { client, reporter } = this;
    if (message.kind === "keepalive") {
      reporter.event({ kind: "keepaliveSent", client, session: message.session, number: message.number });
    } else if (message.kind === "command") {
      const command = decodeCommand(message.payload);
      if (command.kind === "openSession") reporter.event({ kind: "openSent", client, key: command.key });
      else if ("request" in command) this.onCommand(command);
    }
  }

  private onCommand(command: NumberedCommand): void {
    const { session, request } = command;
    const call = this.callFor(command);
    if (call !== null) this.sent.add(call);
    this.reporter.event({ kind: "sent", client: this.client, session, request, call });
  }

  private callFor(command: NumberedCommand): number | null {
    const { session } = command;
    if (command.kind === "acquire") {
      const call = callIn(command.info);
      const key = `${session} ${command.request}`;
      if (call !== null) {
        this.calls.set(key, call);
        this.asked.set(call, key);
      }
      return call;
    }
    if (command.kind !== "release" && command.kind !== "cancel") return null;
    const acquire = this.calls.get(`${session} ${command.of}`) ?? null;
    if (acquire === null || command.kind === "cancel") return acquire;
    // Without a call it is that of a grant that crossed its cancel.
    return this.events.releaseOf(acquire) ?? acquire;
  }

  private onFrame(frame: Uint8Array, events: SocketEvents, peer: Peer): void {
    const messages = decodeServerFrame(frame);
    const ended = new Set<number>();
    let isRenewed = false;
    for (const message of messages) {
      this.onHeard(message, peer);
      const over = endedBy(message);
      if (over !== null) ended.add(over);
      if (message.kind === "acknowledged" || message.kind === "sessionOpened") isRenewed = true;
    }
    this.endedByCluster = ended;
    events.onFrame(frame);
    this.endedByCluster = new Set();
    if (isRenewed) this.events.onRenewed();
  }

  private onHeard(message: ServerMessage, peer: Peer): void {
    const { client, reporter } = this;
    if (message.kind === "welcome") peer.node = message.node;
    else if (message.kind === "outcome") this.onTold(message.session, message.request, message.outcome);
    else if (message.kind === "resumed") {
      const { session } = message;
      for (const { request, grants, maxHoldMs } of message.holds)
        this.onTold(session, request, { kind: "granted", grants, maxHoldMs });
      for (const request of message.waiting) this.onTold(session, request, { kind: "waiting" });
      for (const { request, outcome } of message.outcomes) this.onTold(session, request, outcome);
    } else if (message.kind === "acknowledged") {
      const { session, number } = message;
      if (peer.node !== null) reporter.tell({ kind: "acknowledgedBy", node: peer.node, session, number });
      reporter.event({ kind: "keepaliveTold", client, session, number });
    } else if (message.kind === "sessionOpened" && !this.opened.has(message.session)) {
      const { session, key, ttlMs } = message;
      this.opened.add(session);
      reporter.event({ kind: "sessionOpened", client, session, key, ttlMs });
    }
  }

  private onTold(session: number, request: number, outcome: Outcome): void {
    this.reporter.event({ kind: "told", client: this.client, session, request, outcome });
    const key = `${session} ${request}`;
    const call = this.calls.get(key);
    if (call !== undefined && outcome.kind === "granted" && this.asked.get(call) === key) {
      this.holds.set(call, { session, request, grants: outcome.grants });
    }
  }
}

/** The session of which this message says that it is over. */
function endedBy(message: ServerMessage): number | null {
  switch (message.kind) {
    case "sessionEnded":
      return message.session;
    case "outcome":
      return message.outcome.kind === "sessionClosed" ? message.session : null;
    case "rejected":
      return message.rejection.kind === "sessionGone" ? message.session : null;
    case "refused":
      return message.refusal.code === "session_gone" ? message.session : null;
    default:
      return null;
  }
}
