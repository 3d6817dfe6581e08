/**
 * Every path that the client port answers, a line for each method. openapi.json describes the same, and a test holds the two against each
 * other.
 */
import type { Exchange } from "./api/exchange.js";
import type { LockApi } from "./api/lock-api.js";
import { openApiDocument } from "./api/openapi.js";
import { answerCheckup, answerHealth, answerIfThere, sendBackup, sendMetrics } from "./node-routes.js";
import type { NodeCall } from "./node-routes.js";

export type Method = "GET" | "POST" | "DELETE";

interface RouteHead {
  readonly method: Method;
  /** The last segment may be open: "{name}". */
  readonly path: string;
  /** Answers HEAD as well; not where a head alone would cost as much as all of it, or never end. */
  readonly hasHead: boolean;
}

export interface NodeRoute extends RouteHead {
  readonly kind: "node";
  readonly run: (call: NodeCall) => void;
}

/** It may wait, so those that are open are counted. */
export interface LockRoute extends RouteHead {
  readonly kind: "locks";
  /** JSON. */
  readonly takesBody: boolean;
  readonly run: (api: LockApi, exchange: Exchange) => void;
}

export type Route = NodeRoute | LockRoute;

export const routes: readonly Route[] = [
  node("/livez", (call) => answerHealth(call, "isLive")),
  node("/readyz", (call) => answerHealth(call, "isReady")),
  node("/metrics", sendMetrics),
  node("/v1/status", (call) => answerIfThere(call, call.parts.status())),
  node("/v1/identity", (call) => answerIfThere(call, call.parts.identity())),
  node("/v1/cluster", (call) => answerIfThere(call, call.parts.cluster())),
  node("/v1/keys", (call) => answerIfThere(call, call.parts.keys())),
  node("/v1/backup", sendBackup, false),
  node("/v1/clock", (call) => answerIfThere(call, call.parts.clock())),
  node("/v1/checkup", answerCheckup),
  node("/v1/openapi.json", (call) => answerIfThere(call, openApiDocument())),
  locks("POST", "/v1/sessions", "json", (api, exchange) => api.openSession(exchange)),
  locks("GET", "/v1/session", "none", (api, exchange) => api.viewSession(exchange)),
  locks("DELETE", "/v1/session", "none", (api, exchange) => api.closeSession(exchange)),
  locks("POST", "/v1/session/renew", "none", (api, exchange) => api.renewSession(exchange)),
  locks("POST", "/v1/acquire", "json", (api, exchange) => api.acquire(exchange)),
  locks("POST", "/v1/release", "json", (api, exchange) => api.release(exchange)),
  locks("POST", "/v1/cancel", "json", (api, exchange) => api.cancel(exchange)),
  locks("POST", "/v1/info", "json", (api, exchange) => api.setInfo(exchange)),
  locks("POST", "/v1/sequencer", "json", (api, exchange) => api.sequencer(exchange)),
  locks("POST", "/v1/check", "json", (api, exchange) => api.check(exchange)),
  locks("GET", "/v1/locks", "none", (api, exchange) => api.list(exchange)),
  locks("GET", "/v1/locks/{name}", "none", (api, exchange) => api.inspect(exchange)),
  locks("GET", "/v1/watch", "none", (api, exchange) => api.watch(exchange)),
];

function node(path: string, run: NodeRoute["run"], hasHead = true): NodeRoute {
  return { kind: "node", method: "GET", path, hasHead, run };
}

function locks(method: Method, path: string, body: "json" | "none", run: LockRoute["run"]): LockRoute {
  return { kind: "locks", method, path, hasHead: path.startsWith("/v1/locks"), takesBody: body === "json", run };
}

/** What may be done at a path, and the part of it that its template leaves open; null: nothing is there. */
export interface Place {
  readonly routes: readonly Route[];
  readonly parameter: string;
}

const exact = new Map<string, Route[]>();
const open = new Map<string, Route[]>();
for (const route of routes) {
  const at = route.path.indexOf("{");
  const [places, key] = at < 0 ? [exact, route.path] : [open, route.path.slice(0, at)];
  places.set(key, [...(places.get(key) ?? []), route]);
}

export function placeFor(path: string): Place | null {
  const found = exact.get(path);
  if (found !== undefined) return { routes: found, parameter: "" };
  const at = path.lastIndexOf("/") + 1;
  const below = open.get(path.slice(0, at));
  const parameter = path.slice(at);
  return below === undefined || parameter === "" ? null : { routes: below, parameter };
}

/** For Allow: each path answers OPTIONS too. */
export function methodsOf({ routes: here }: Place): readonly string[] {
  const methods = here.flatMap(({ method, hasHead }) => (hasHead ? [method, "HEAD"] : [method]));
  return [...methods, "OPTIONS"];
}
