/** The plain HTTP side of the client port: health for supervisors, figures for Prometheus, this node's status. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { STATUS_CODES } from "node:http";
import { isLoopback } from "./address.js";
import { backupContentType, streamBackup } from "./backup-stream.js";
import type { BackupSource } from "./backup-stream.js";
import { BackupRefusedError } from "./backup-taking.js";
import { diskSpaceOf } from "./checkup.js";
import type { Checkup, CheckupAnswer, ClockReading } from "./checkup.js";
import type { ClusterFacts, NodeIdentity } from "./joining.js";

export interface Health {
  readonly isLive: boolean;
  readonly isReady: boolean;
  /** Why it isn't ready, for a person. */
  readonly problem: string | null;
}

export interface HttpOptions {
  /** Web origins that may use this port. */
  readonly origins: readonly string[];
  /** Hosts under which this node is called, without ports; of interest when `isLoopbackOnly`. */
  readonly hosts: readonly string[];
  /** The listener is on a loopback address. */
  readonly isLoopbackOnly: boolean;
}

export interface HttpParts {
  health(): Health;
  /** This node's own view of itself; null before the cluster is formed. */
  status(): object | null;
  /** Who this is, for whoever adds it to a cluster; null while it is starting. */
  identity(): NodeIdentity | null;
  /** For a node that wants to join; null before the cluster is formed. */
  cluster(): ClusterFacts | null;
  clock(): ClockReading;
  /** At any time, also of a node that isn't ready. */
  checkup(): Checkup;
  metrics(): Promise<{ readonly contentType: string; readonly text: string }>;
  /** Rejects with BackupRefusedError. */
  backup(): Promise<BackupSource>;
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

export function createHttpHandler(
  options: HttpOptions,
  parts: HttpParts,
): (request: IncomingMessage, response: ServerResponse) => void {
  return (request, response) => {
    // A request may bring a body nobody asked for; unread it would keep the connection busy.
    request.resume();
    const problem = doorProblem(request, options);
    if (problem !== null) return sendProblem(response, problem.status, problem.detail);
    if (request.headers.origin !== undefined) {
      response.setHeader("access-control-allow-origin", request.headers.origin);
      response.setHeader("vary", "origin");
    }
    const path = (request.url ?? "/").split("?", 1)[0] ?? "/";
    const route = routes.get(path);
    if (route === undefined) return sendProblem(response, 404, "there is nothing at this path");
    // Whoever asks for the head of a backup alone would have one taken for nothing.
    const allowed = route === sendBackup ? ["GET"] : ["GET", "HEAD"];
    if (!allowed.includes(request.method ?? "")) {
      response.setHeader("allow", allowed.join(", "));
      return sendProblem(response, 405, "this path can only be read");
    }
    route(parts, response);
  };
}

type Route = (parts: HttpParts, response: ServerResponse) => void;

const routes: ReadonlyMap<string, Route> = new Map<string, Route>([
  ["/livez", (parts, response) => sendHealth(response, parts.health(), "isLive")],
  ["/readyz", (parts, response) => sendHealth(response, parts.health(), "isReady")],
  ["/metrics", sendMetrics],
  ["/v1/status", (parts, response) => sendIfThere(parts, response, parts.status())],
  ["/v1/identity", (parts, response) => sendIfThere(parts, response, parts.identity())],
  ["/v1/cluster", (parts, response) => sendIfThere(parts, response, parts.cluster())],
  ["/v1/backup", sendBackup],
  ["/v1/clock", (parts, response) => sendJson(response, 200, "application/json", parts.clock())],
  ["/v1/checkup", sendCheckup],
]);

const commonHeaders = { "cache-control": "no-store", "x-content-type-options": "nosniff" };

function sendHealth(response: ServerResponse, health: Health, asked: "isLive" | "isReady"): void {
  if (health[asked]) sendJson(response, 200, "application/json", { status: "ok" });
  else sendProblem(response, 503, health.problem ?? "not yet");
}

function sendIfThere(parts: HttpParts, response: ServerResponse, body: object | null): void {
  if (body === null) sendProblem(response, 503, parts.health().problem ?? "not yet");
  else sendJson(response, 200, "application/json", body);
}

function sendMetrics(parts: HttpParts, response: ServerResponse): void {
  parts.metrics().then(
    ({ contentType, text }) => send(response, 200, contentType, text),
    () => sendProblem(response, 500, "the figures could not be collected"),
  );
}

function sendCheckup(parts: HttpParts, response: ServerResponse): void {
  const checkup = parts.checkup();
  void diskSpaceOf(checkup.dataDirectory).then((disk) => {
    const answer: CheckupAnswer = { ...checkup, disk };
    sendJson(response, 200, "application/json", answer);
  });
}

/** Only of a node that is up to date as far as it knows. */
function sendBackup(parts: HttpParts, response: ServerResponse): void {
  const { isReady, problem } = parts.health();
  if (!isReady) return sendProblem(response, 503, problem ?? "not yet", "not_ready");
  parts.backup().then(
    (source) => {
      response.writeHead(200, { ...commonHeaders, "content-type": backupContentType });
      return streamBackup(response, source);
    },
    (error: unknown) => {
      if (error instanceof BackupRefusedError) sendProblem(response, 503, error.message, error.code);
      else sendProblem(response, 500, "the backup could not be taken", "internal");
    },
  );
}

/** RFC 9457, with a stable `code` where programs tell problems apart. */
function sendProblem(response: ServerResponse, status: number, detail: string, code?: string): void {
  const title = STATUS_CODES[status] ?? "Error";
  const problem = { type: "about:blank", title, status, detail, ...(code === undefined ? {} : { code }) };
  sendJson(response, status, "application/problem+json", problem);
}

function sendJson(response: ServerResponse, status: number, contentType: string, body: object): void {
  send(response, status, contentType, `${JSON.stringify(body)}\n`);
}

function send(response: ServerResponse, status: number, contentType: string, text: string): void {
  const body = Buffer.from(text);
  response.writeHead(status, {
    "content-type": contentType,
    "content-length": body.length,
    ...commonHeaders,
  });
  // Node leaves the body out of an answer to HEAD.
  response.end(body);
}
