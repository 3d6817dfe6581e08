/**
 * Between a client library and its network: sees each frame, and tells the history what the library and the cluster say to each other.
 * An acquire bears the number of its call in its info, so that what is sent for it can be told.
 */
import type { Grant, Outcome } from "@holdfast/checker";
import type { Socket, SocketEvents, Transport } from "@holdfast/client";
import { decodeClientFrame, decodeCommand, decodeServerFrame } from "@holdfast/wire";
import type { ClientMessage, ServerMessage } from "@holdfast/wire";
import type { Counts } from "./counts.js";
import type { HistorySink } from "./sink.js";

const infoPrefix = "call ";

/** The info of an acquire that serves this call. */
export function infoFor(call: number): string {
  return `${infoPrefix}${call}`;
}

function callIn(info: string): number | null {
  return info.startsWith(infoPrefix) ? Number(info.slice(infoPrefix.length)) : null;
}

export interface TapEvents {
  /** The library has heard what may have renewed this session. */
  onRenewed(session: number): void;
  /** The call that a release of what `acquire` got serves, if there is one. */
  releaseOf(acquire: number): number | null;
  /** The call that closes the client, if there is one. */
  readonly closing: number | null;
}

export interface TapParts {
  readonly transport: Transport;
  readonly sink: HistorySink;
  readonly counts: Counts;
}

export interface Hold {
  readonly session: number;
  readonly request: number;
}

type NumberedCommand = Extract<ReturnType<typeof decodeCommand>, { readonly request: number }>;

export class ClientTap implements Transport {
  readonly #client: string;
  readonly #parts: TapParts;
  readonly #events: TapEvents;
  /** Session -> request -> call. */
  readonly #calls = new Map<number, Map<number, number>>();
  /** Call -> its newest acquire: the one whose answers the library takes. */
  readonly #asked = new Map<number, Hold>();
  readonly #lastOutcomes = new Map<number, Outcome>();
  readonly #holds = new Map<number, Hold & { readonly grants: readonly Grant[] }>();
  readonly #sent = new Set<number>();
  readonly #opened = new Set<number>();
  /** Over, by the word of the cluster in the frame that is being read. */
  #endedByCluster = new Set<number>();

  constructor(client: string, parts: TapParts, events: TapEvents) {
    this.#client = client;
    this.#parts = parts;
    this.#events = events;
  }

  open(endpoint: string, events: SocketEvents): Socket {
    const socket = this.#parts.transport.open(endpoint, {
      onOpened: () => events.onOpened(),
      onFrame: (frame) => this.#onFrame(frame, events),
      onPong: () => events.onPong(),
      onClosed: (problem) => events.onClosed(problem),
    });
    return {
      send: (frame) => {
        for (const message of decodeClientFrame(frame)) this.#onSaid(message);
        socket.send(frame);
      },
      ping: () => socket.ping(),
      close: () => socket.close(),
      terminate: () => socket.terminate(),
    };
  }

  /** What the cluster said last of the acquire of this call. */
  lastOutcomeOf(call: number): Outcome | null {
    return this.#lastOutcomes.get(call) ?? null;
  }

  /** The hold that this call got, if the cluster has told of these grants. */
  holdOf(call: number, grants: readonly Grant[]): Hold | null {
    const hold = this.#holds.get(call);
    const isSame = hold !== undefined && hold.grants[0]?.token === grants[0]?.token;
    return isSame ? { session: hold.session, request: hold.request } : null;
  }

  /** Whether anything has left for this call. */
  wasSent(call: number): boolean {
    return this.#sent.has(call);
  }

  /** The library says that a session is over. */
  onSessionEnded(session: number, reason: string): void {
    const by = this.#endedByCluster.has(session) ? "cluster" : "client";
    this.#parts.counts.add(`session ended by ${by}: ${reason}`);
    this.#parts.sink.emit({ kind: "sessionEnded", client: this.#client, session, reason, by });
  }

  #onSaid(message: ClientMessage): void {
    const { sink, counts } = this.#parts;
    const client = this.#client;
    switch (message.kind) {
      case "command": {
        const command = decodeCommand(message.payload);
        if (command.kind === "openSession") sink.emit({ kind: "openSent", client, key: command.key });
        else if ("request" in command) this.#onCommand(command);
        return;
      }
      case "keepalive":
        sink.emit({ kind: "keepaliveSent", client, session: message.session, number: message.number });
        return;
      case "resume":
        counts.add("resume sent");
        return;
      default:
        return;
    }
  }

  #onCommand(command: NumberedCommand): void {
    const { session, request } = command;
    const call = this.#callFor(command);
    if (call !== null) this.#sent.add(call);
    this.#parts.sink.emit({ kind: "sent", client: this.#client, session, request, call });
  }

  #callFor(command: NumberedCommand): number | null {
    const { session, request } = command;
    switch (command.kind) {
      case "acquire": {
        const call = callIn(command.info);
        if (call !== null) {
          this.#callsOf(session).set(request, call);
          this.#asked.set(call, { session, request });
        }
        return call;
      }
      case "release": {
        const acquire = this.#callsOf(session).get(command.of);
        if (acquire === undefined) return null;
        // Without a call it is that of a grant that crossed its cancel.
        return this.#events.releaseOf(acquire) ?? acquire;
      }
      case "cancel":
        return this.#callsOf(session).get(command.of) ?? null;
      case "closeSession":
        return this.#events.closing;
      default:
        return null;
    }
  }

  #callsOf(session: number): Map<number, number> {
    let calls = this.#calls.get(session);
    if (calls === undefined) {
      calls = new Map();
      this.#calls.set(session, calls);
    }
    return calls;
  }

  #onFrame(frame: Uint8Array, events: SocketEvents): void {
    const messages = readable(frame);
    if (messages === null) this.#parts.counts.add("unreadable frame from a node");
    const ended = new Set<number>();
    const renewed = new Set<number>();
    for (const message of messages ?? []) {
      this.#onHeard(message);
      const over = endedBy(message);
      if (over !== null) ended.add(over);
      if (message.kind === "acknowledged" || message.kind === "sessionOpened") renewed.add(message.session);
    }
    this.#endedByCluster = ended;
    events.onFrame(frame);
    this.#endedByCluster = new Set();
    for (const session of renewed) this.#events.onRenewed(session);
  }

  #onHeard(message: ServerMessage): void {
    const { sink, counts } = this.#parts;
    const client = this.#client;
    switch (message.kind) {
      case "outcome":
        this.#onTold(message.session, message.request, message.outcome);
        return;
      case "resumed": {
        counts.add("session resumed");
        const { session } = message;
        for (const { request, grants, maxHoldMs } of message.holds) {
          this.#onTold(session, request, { kind: "granted", grants, maxHoldMs });
        }
        for (const request of message.waiting) this.#onTold(session, request, { kind: "waiting" });
        for (const { request, outcome } of message.outcomes) this.#onTold(session, request, outcome);
        return;
      }
      case "acknowledged":
        sink.emit({ kind: "keepaliveTold", client, session: message.session, number: message.number });
        return;
      case "sessionOpened": {
        const { session, key, ttlMs } = message;
        if (this.#opened.has(session)) return;
        this.#opened.add(session);
        sink.emit({ kind: "sessionOpened", client, session, key, ttlMs });
        return;
      }
      case "rejected":
        counts.add(`rejected: ${message.rejection.kind}`);
        return;
      case "refused":
        counts.add(`refused: ${message.refusal.code}`);
        return;
      case "refusedRun":
        counts.add(`refused in a run: ${message.refusal.code}`);
        return;
      case "superseded":
        counts.add("connection superseded");
        return;
      default:
        return;
    }
  }

  #onTold(session: number, request: number, outcome: Outcome): void {
    this.#parts.sink.emit({ kind: "told", client: this.#client, session, request, outcome });
    const call = this.#calls.get(session)?.get(request);
    if (call === undefined) return;
    // A session that is over here may live on in the cluster, and its waiters be granted, in one generation with those of the next.
    const asked = this.#asked.get(call);
    if (asked?.session !== session || asked.request !== request) return;
    const last = this.#lastOutcomes.get(call);
    if (last?.kind === "waiting" && outcome.kind === "granted") this.#parts.counts.add("waiter granted");
    this.#lastOutcomes.set(call, outcome);
    if (outcome.kind === "granted") this.#holds.set(call, { session, request, grants: outcome.grants });
  }
}

function readable(frame: Uint8Array): readonly ServerMessage[] | null {
  try {
    return decodeServerFrame(frame);
  } catch {
    return null;
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
