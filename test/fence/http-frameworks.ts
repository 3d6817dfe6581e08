/** One small application on each framework, over a real socket: PUT /guarded/:id has its turn, PUT /fenced/:id is given its fence. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { problemOf } from "@holdfast/fence/http";
import type {
  FastifyReplyLike,
  FastifyRequestLike,
  HonoContextLike,
  HttpFence,
  HttpFenced,
  HttpGuard,
  NextFunction,
} from "@holdfast/fence/http";
import { driver } from "./drivers.js";

/** What every application's handlers do; what it gives is the answer. */
export type Work = (request: {
  readonly id: string;
  readonly fence: HttpFenced;
  readonly body: string;
}) => Promise<string>;

export interface App {
  readonly url: string;
  /** Of all so far. */
  readonly closedSockets: () => number;
  stop(): Promise<void>;
}

export interface AppParts {
  readonly guard: HttpGuard;
  readonly fence: HttpFence;
  readonly work: Work;
}

export type FrameworkName = "node:http" | "Express" | "Fastify" | "Hono";

export const frameworks: Readonly<Record<FrameworkName, (parts: AppParts) => Promise<App>>> = {
  "node:http": startNode,
  Express: startExpress,
  Fastify: startFastify,
  Hono: startHono,
};

async function served(server: Server, isListening = false): Promise<App> {
  let closed = 0;
  server.on("connection", (socket: Socket) => socket.once("close", () => (closed += 1)));
  if (!isListening) server.listen(0, "127.0.0.1");
  if (!server.listening) await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    closedSockets: () => closed,
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

function idIn(request: IncomingMessage): string {
  return (request.url ?? "").split("/")[2] ?? "";
}

async function startNode({ guard, fence, work }: AppParts): Promise<App> {
  const handler = async (request: IncomingMessage & { fence: HttpFenced }, response: ServerResponse): Promise<void> => {
    const body = Buffer.concat(await request.toArray()).toString("utf8");
    response.end(await work({ id: idIn(request), fence: request.fence, body }));
  };
  const resourceOf = (request: IncomingMessage): string => `doc:${idIn(request)}`;
  const [guarded, fenced] = [guard.node(resourceOf, handler), fence.node(resourceOf, handler)];
  return served(
    createServer((request, response) => {
      const serve = request.url?.startsWith("/guarded/") === true ? guarded : fenced;
      serve(request, response).catch(() => response.writeHead(500).end());
    }),
  );
}

interface ExpressRequest extends IncomingMessage {
  readonly params: { readonly id: string };
  readonly body: string;
  fence?: HttpFenced;
}

interface ExpressApp {
  set(name: string, value: string): void;
  use(...handlers: unknown[]): void;
  put(path: string, ...handlers: unknown[]): void;
}

async function startExpress({ guard, fence, work }: AppParts): Promise<App> {
  const express = driver("express") as (() => ExpressApp) & { text(options: object): unknown };
  const app = express();
  // Otherwise it prints errors.
  app.set("env", "test");
  const handler = async (request: ExpressRequest, response: ServerResponse): Promise<void> => {
    const { fence: given, params, body } = request;
    if (given === undefined) throw new Error("no fence was given");
    response.end(await work({ id: params.id, fence: given, body }));
  };
  const resourceOf = (request: ExpressRequest): string => `doc:${request.params.id}`;
  const text = express.text({ type: "*/*" });
  app.put("/guarded/:id", text, guard.express(resourceOf, handler));
  app.put("/fenced/:id", text, fence.express(resourceOf), handler);
  app.use((error: unknown, _request: ExpressRequest, response: ServerResponse, next: NextFunction) => {
    const problem = problemOf(error);
    if (problem === null) next(error);
    else response.writeHead(problem.status, { ...problem.headers }).end(problem.body);
  });
  return served(createServer(app as unknown as (request: IncomingMessage, response: ServerResponse) => void));
}

interface FastifyRequest extends FastifyRequestLike {
  readonly params: { readonly id: string };
  readonly body: string;
  fence?: HttpFenced;
}

interface FastifyApp {
  readonly server: Server;
  put(path: string, ...rest: unknown[]): void;
  setErrorHandler(handler: (error: unknown, request: FastifyRequest, reply: FastifyReplyLike) => unknown): void;
  listen(options: object): Promise<string>;
  close(): Promise<void>;
}

async function startFastify({ guard, fence, work }: AppParts): Promise<App> {
  const { fastify } = driver("fastify") as { fastify(options: object): FastifyApp };
  const app = fastify({ forceCloseConnections: true });
  const handler = async ({ params, fence: given, body }: FastifyRequest): Promise<string> => {
    if (given === undefined) throw new Error("no fence was given");
    return work({ id: params.id, fence: given, body });
  };
  const resourceOf = (request: FastifyRequest): string => `doc:${request.params.id}`;
  app.setErrorHandler((error, _request, reply) => {
    const problem = problemOf(error);
    if (problem === null) throw error;
    return reply
      .code(problem.status)
      .headers({ ...problem.headers })
      .send(problem.body);
  });
  app.put("/guarded/:id", guard.fastify(resourceOf, handler));
  app.put("/fenced/:id", { onRequest: fence.fastify(resourceOf) }, handler);
  await app.listen({ port: 0, host: "127.0.0.1" });
  return { ...(await served(app.server, true)), stop: () => app.close() };
}

interface HonoContext extends HonoContextLike {
  readonly req: HonoContextLike["req"] & { param(name: string): string; text(): Promise<string> };
  get(name: "fence"): HttpFenced;
}

interface HonoApp {
  readonly fetch: unknown;
  put(path: string, ...handlers: unknown[]): void;
  onError(handler: (error: Error) => Response): void;
}

async function startHono({ guard, fence, work }: AppParts): Promise<App> {
  const { Hono } = driver("hono") as { readonly Hono: new () => HonoApp };
  const { serve } = driver("@hono/node-server") as { serve(options: object): Server };
  const app = new Hono();
  const handler = async (context: HonoContext): Promise<Response> => {
    const body = await context.req.text();
    return new Response(await work({ id: context.req.param("id"), fence: context.get("fence"), body }));
  };
  const resourceOf = (context: HonoContext): string => `doc:${context.req.param("id")}`;
  app.onError(() => new Response("failed", { status: 500 }));
  app.put("/guarded/:id", guard.hono(resourceOf, handler));
  app.put("/fenced/:id", fence.hono(resourceOf), handler);
  return served(serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }), true);
}
