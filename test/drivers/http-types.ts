// Compiled by test/fence/pg-types.test.ts: the types of the frameworks fit what @holdfast/fence/http gives, which depends on none of them.
import { createServer } from "node:http";
import type { SequencerKeys } from "@holdfast/fence";
import { fencedFetch, httpFence, httpGuard, memoryRegister, problemOf } from "@holdfast/fence/http";
import type { HttpFenced } from "@holdfast/fence/http";
import express from "express";
import type { Request as ExpressRequest, Response as ExpressResponse } from "express";
import createFastify from "fastify";
import type { FastifyRequest } from "fastify";
import { Hono } from "hono";
import type { Context } from "hono";

declare const keys: SequencerKeys;
declare function save(fence: HttpFenced, body: unknown): Promise<void>;
interface Params {
  id: string;
}
const fence = httpFence({ keys });
const guard = httpGuard({ keys, fences: memoryRegister() });

const listener = guard.node(
  (request) => `doc:${request.url}`,
  async (request, response) => {
    await save(request.fence, request.url);
    response.end();
  },
);
createServer((request, response) => {
  listener(request, response).catch(() => response.destroy());
});

const app = express();
const ofExpress = (request: ExpressRequest<Params>): string => `doc:${request.params.id}`;
app.put(
  "/docs/:id",
  guard.express(ofExpress, async (request, response: ExpressResponse) => {
    await save(request.fence, request.body);
    response.json({});
  }),
);
app.post("/docs/:id", fence.express(ofExpress), async (request, response) => {
  await save((request as typeof request & { fence: HttpFenced }).fence, request.body);
  response.json({});
});

const fastify = createFastify();
const ofFastify = (request: FastifyRequest): string => `doc:${(request.params as Params).id}`;
fastify.put(
  "/docs/:id",
  guard.fastify(ofFastify, async (request) => save(request.fence, request.body)),
);
fastify.post("/docs/:id", { onRequest: fence.fastify(ofFastify) }, async () => ({}));
fastify.setErrorHandler((error, _request, reply) => {
  const problem = problemOf(error);
  if (problem === null) throw error;
  return reply.code(problem.status).headers(problem.headers).send(problem.body);
});

interface Environment {
  Variables: { fence: HttpFenced };
}
const hono = new Hono<Environment>();
const ofHono = (context: Context<Environment, "/docs/:id">): string => `doc:${context.req.param("id")}`;
hono.put(
  "/docs/:id",
  guard.hono(ofHono, async (context) => {
    await save(context.get("fence"), await context.req.json());
    return context.json({});
  }),
);
hono.post("/docs/:id", fence.hono(ofHono), async (context) => {
  await save(context.get("fence"), await context.req.json());
  return context.json({});
});

export async function call(lock: { sequencer(): Promise<string> }): Promise<number> {
  return (await fencedFetch(lock, "http://127.0.0.1/docs/1", { method: "PUT", body: "x" })).status;
}
