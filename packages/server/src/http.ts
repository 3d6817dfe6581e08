/** The plain HTTP side of the client port: the door, the way to each route, and what all answers have in common. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { isLoopback } from "./address.js";
import { invalidArgument, overloaded, problem } from "./api/answers.js";
import type { Answer } from "./api/answers.js";
import { HttpExchange, sendAnswer } from "./api/http-exchange.js";
import { readJson } from "./api/json-body.js";
import { apiLimits } from "./api/limits.js";
import { LockApi } from "./api/lock-api.js";
import { methodsOf, placeFor } from "./http-routes.js";
import type { LockRoute, Place } from "./http-routes.js";
import type { RejectionReason } from "./metrics.js";
import { notReady } from "./node-routes.js";
import type { HttpParts } from "./node-routes.js";
import type { ClientEvents, Clock } from "./ports.js";

export interface HttpOptions {
  /** Web origins that may use this port. */
  readonly origins: readonly string[];
  /** Hosts under which this node is called, without ports; of interest when `isLoopbackOnly`. */
  readonly hosts: readonly string[];
  /** The listener is on a loopback address. */
  readonly isLoopbackOnly: boolean;
  /** Requests about locks that are open at a time. */
  readonly requestsMax: number;
  /** What a stream of events may have unread. */
  readonly bufferedBytesMax: number;
}

/** Why a request is refused before anything else is looked at; null when it may go on. */
export type DoorProblem = { readonly reason: "origin" | "host"; readonly status: number; readonly detail: string };

/**
 * Any page in a developer's browser can reach localhost. A cross-site request carries an Origin; a page whose name was rebound to
 * 127.0.0.1 carries that name as Host.
 */
export function doorProblem(request: IncomingMessage, options: HttpOptions): DoorProblem | null {
  const { origin, host } = request.headers;
  if (origin !== undefined && !options.origins.includes(origin)) {
    return { reason: "origin", status: 403, detail: "this web origin is not listed in the configuration (origins)" };
  }
  if (!options.isLoopbackOnly || host === undefined) return null;
  const name = hostName(host);
  if (isLoopback(name) || options.hosts.includes(name)) return null;
  return { reason: "host", status: 421, detail: "this node is not called by that host name" };
}

function hostName(host: string): string {
  const withoutPort = host.replace(/:[0-9]*$/, "");
  return withoutPort.replace(/^\[(.*)\]$/, "$1").toLowerCase();
}

export interface HttpSideParts {
  readonly clock: Clock;
  readonly node: HttpParts;
  onRejected(reason: RejectionReason): void;
}

export class HttpSide {
  private readonly options: HttpOptions;
  private readonly parts: HttpSideParts;
  private readonly api: LockApi;
  private isOpen = false;
  /** Requests about locks that are open, in all and on each socket. */
  private waiting = 0;
  private readonly waitingOn = new WeakMap<Socket, number>();

  constructor(options: HttpOptions, parts: HttpSideParts) {
    this.options = options;
    this.parts = parts;
    this.api = new LockApi({ clock: parts.clock, hasSession: (session) => parts.node.hasSession(session) });
  }

  /** From now on locks can be asked for; before that the answer is to come back. */
  open(clients: ClientEvents): void {
    this.isOpen = true;
    this.api.open(clients);
  }

  /** What waits is answered. */
  close(): void {
    this.isOpen = false;
    this.api.close();
  }

  handle(request: IncomingMessage, response: ServerResponse): void {
    // A client that goes away shows as "close".
    request.on("error", () => undefined);
    response.on("error", () => undefined);
    const answer = (value: Answer): void => sendAnswer(request, response, value);
    const door = doorProblem(request, this.options);
    if (door !== null) {
      request.resume();
      this.parts.onRejected(door.reason);
      return answer(problem(door.status, door.status === 403 ? "unauthorized" : "invalid_argument", door.detail));
    }
    allowOrigin(request, response);
    const target = request.url ?? "/";
    const at = target.indexOf("?");
    const [path, query] = at < 0 ? [target, ""] : [target.slice(0, at), target.slice(at + 1)];
    const place = placeFor(path);
    const method = request.method ?? "";
    const route = place?.routes.find((each) => each.method === method || (each.hasHead && method === "HEAD"));
    if (route?.kind === "locks")
      return this.beginWait(route, request, response, { query, parameter: place?.parameter ?? "" });
    // A request may bring a body nobody asked for; unread it would keep the connection busy.
    request.resume();
    if (place === null) return answer(invalidArgument("path", "leads nowhere: there is nothing at this path", 404));
    if (route === undefined) return answer(otherMethod(place, method));
    route.run({ parts: this.parts.node, response, answer });
  }

  private beginWait(
    route: LockRoute,
    request: IncomingMessage,
    response: ServerResponse,
    found: { readonly query: string; readonly parameter: string },
  ): void {
    const refusal = this.refusal();
    if (refusal !== null) {
      request.resume();
      return sendAnswer(request, response, refusal);
    }
    const { socket } = request;
    const others = this.waitingOn.get(socket) ?? 0;
    // Answers keep the order of their requests: this one can't be told before the others have theirs.
    if (others >= apiLimits.pipelinedMax) {
      this.parts.onRejected("connection_cap");
      socket.destroy();
      return;
    }
    this.count(socket, 1);
    const over = onceOver(socket, response);
    over.add(() => this.count(socket, -1));
    const run = (body: unknown): void => {
      const { bufferedBytesMax } = this.options;
      const onSlowReader = (): void => this.parts.onRejected("slow_reader");
      const exchange = new HttpExchange(request, response, { ...found, body, bufferedBytesMax, onSlowReader });
      over.add(() => exchange.onOver());
      route.run(this.api, exchange);
    };
    if (!route.takesBody) {
      request.resume();
      return run(undefined);
    }
    readJson(request, (body, answer) => {
      if (socket.destroyed) return;
      if (answer === null) run(body);
      else sendAnswer(request, response, answer);
    });
  }

  private count(socket: Socket, change: number): void {
    this.waiting += change;
    this.waitingOn.set(socket, (this.waitingOn.get(socket) ?? 0) + change);
  }

  private refusal(): Answer | null {
    if (!this.isOpen) {
      this.parts.onRejected("not_ready");
      return notReady(this.parts.node);
    }
    if (this.waiting < this.options.requestsMax) return null;
    this.parts.onRejected("connection_cap");
    return overloaded("this node has as many requests over HTTP as it takes");
  }
}

/**
 * What is added runs once the answer has left or its socket is closed: a pipelined answer whose turn never came has no "close" of its own.
 */
function onceOver(socket: Socket, response: ServerResponse): { add(run: () => void): void } {
  const runs: (() => void)[] = [];
  const onClose = (): void => {
    socket.off("close", onClose);
    response.off("close", onClose);
    for (const run of runs.splice(0)) run();
  };
  socket.once("close", onClose);
  response.once("close", onClose);
  return { add: (run) => runs.push(run) };
}

/** A browser asks before it sends what a form couldn't send, and hides headers that nobody names. */
function allowOrigin({ headers: { origin } }: IncomingMessage, response: ServerResponse): void {
  if (origin === undefined) return;
  response.setHeader("access-control-allow-origin", origin);
  response.setHeader("access-control-expose-headers", "allow, location, retry-after");
  response.setHeader("vary", "origin");
}

function otherMethod(place: Place, method: string): Answer {
  const methods = methodsOf(place).join(", ");
  if (method === "OPTIONS") {
    const headers = {
      allow: methods,
      "access-control-allow-methods": methods,
      "access-control-allow-headers": "content-type, holdfast-session, last-event-id",
      "access-control-max-age": "600",
    };
    return { status: 204, body: null, headers };
  }
  const answer = invalidArgument("method", `is not among those of this path: ${methods}`, 405);
  return { ...answer, headers: { ...answer.headers, allow: methods } };
}
