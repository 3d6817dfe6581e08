/** Hands the verified fence to the handler. It compares nothing: the handler's own store does, by its guard, in one step with the write. */
import type { IncomingMessage, ServerResponse } from "node:http";

import { checkOptionNames } from "../options.js";
import type { SequencerKeys } from "../sequencer-keys.js";
import { answer, problemOf } from "./problem.js";
import { checkFunction, checkKeys, presentedFence, sequencerHeader } from "./sequencer-header.js";
import { honoAddress } from "./shapes.js";
import type {
  FastifyReplyLike,
  FastifyRequestLike,
  HonoContextLike,
  HttpFenced,
  NextFunction,
  ResourceOf,
} from "./shapes.js";

export interface HttpFenceOptions {
  /** What sequencers are verified with: `sequencerKeys(...)`. */
  readonly keys: SequencerKeys;
}

type MaybeFenced<Request> = Request & { fence?: HttpFenced };

/**
 * No guard by itself. Each refuses a request without a good sequencer of its lock, by 400, 401, 403 or 503, and gives the handler `fence`
 * for the guard of its store. A StaleTokenError that comes out of a handler is answered with 412: by node and hono at once, in Express and
 * Fastify by an error handler with `problemOf`.
 */
export interface HttpFence {
  /** For `createServer`. What the handler rejects with otherwise comes out. */
  node(
    resourceOf: ResourceOf<IncomingMessage>,
    handler: (request: IncomingMessage & { fence: HttpFenced }, response: ServerResponse) => unknown,
  ): (request: IncomingMessage, response: ServerResponse) => Promise<void>;
  /** A middleware that sets `request.fence`. */
  express<Request extends IncomingMessage>(
    resourceOf: ResourceOf<Request>,
  ): (request: Request, response: ServerResponse, next: NextFunction) => void;
  /** A hook, for onRequest or later, that sets `request.fence`. */
  fastify<Request extends FastifyRequestLike>(
    resourceOf: ResourceOf<Request>,
  ): (request: Request, reply: FastifyReplyLike) => Promise<unknown>;
  /** A middleware that sets the variable `fence`. */
  hono<Context extends HonoContextLike>(
    resourceOf: ResourceOf<Context>,
  ): (context: Context, next: () => Promise<void>) => Promise<Response | void>;
}

/** @throws InvalidArgumentError naming the option. */
export function httpFence(options: HttpFenceOptions): HttpFence {
  checkOptionNames(options, "options", ["keys"]);
  const { keys } = options;
  checkKeys(keys);
  return {
    node: (resourceOf, handler) => {
      checkFunction(resourceOf, "resourceOf");
      checkFunction(handler, "handler");
      return async (request, response) => {
        try {
          const fence = await fenceOfMessage(keys, request, resourceOf);
          await handler(Object.assign(request, { fence }), response);
        } catch (error) {
          answerOrThrow(response, error);
        }
      };
    },
    express: (resourceOf) => {
      checkFunction(resourceOf, "resourceOf");
      return (request, response, next) => {
        fenceOfMessage(keys, request, resourceOf).then(
          (fence) => {
            (request as MaybeFenced<typeof request>).fence = fence;
            next();
          },
          (error: unknown) => answerOrPass(response, error, next),
        );
      };
    },
    fastify: (resourceOf) => {
      checkFunction(resourceOf, "resourceOf");
      return async (request, reply) => {
        try {
          (request as MaybeFenced<typeof request>).fence = await fenceOfFastify(keys, request, resourceOf);
          return undefined;
        } catch (error) {
          return sendOrThrow(reply, error);
        }
      };
    },
    hono: (resourceOf) => {
      checkFunction(resourceOf, "resourceOf");
      return async (context, next) => {
        try {
          context.set("fence", await fenceOfHono(keys, context, resourceOf));
        } catch (error) {
          return responseOrThrow(error);
        }
        await next();
        return staleResponse(context);
      };
    },
  };
}

export async function fenceOfMessage<Request extends IncomingMessage>(
  keys: SequencerKeys,
  request: Request,
  resourceOf: ResourceOf<Request>,
): Promise<HttpFenced> {
  const presented = { sequencer: request.headers[sequencerHeader], holder: request.socket.remoteAddress };
  return presentedFence(keys, presented, (fence) => resourceOf(request, fence));
}

export async function fenceOfFastify<Request extends FastifyRequestLike>(
  keys: SequencerKeys,
  request: Request,
  resourceOf: ResourceOf<Request>,
): Promise<HttpFenced> {
  const presented = { sequencer: request.headers[sequencerHeader], holder: request.ip };
  return presentedFence(keys, presented, (fence) => resourceOf(request, fence));
}

export async function fenceOfHono<Context extends HonoContextLike>(
  keys: SequencerKeys,
  context: Context,
  resourceOf: ResourceOf<Context>,
): Promise<HttpFenced> {
  const presented = { sequencer: context.req.header(sequencerHeader), holder: honoAddress(context) };
  return presentedFence(keys, presented, (fence) => resourceOf(context, fence));
}

/** What isn't ours to answer goes on. */
export function answerOrThrow(response: ServerResponse, error: unknown): void {
  const problem = problemOf(error);
  if (problem === null) throw error;
  answer(response, problem);
}

export function answerOrPass(response: ServerResponse, error: unknown, next: NextFunction): void {
  const problem = problemOf(error);
  if (problem === null) next(error);
  else answer(response, problem);
}

export function sendOrThrow(reply: FastifyReplyLike, error: unknown): FastifyReplyLike {
  const problem = problemOf(error);
  if (problem === null) throw error;
  if (reply.sent) reply.raw.destroy();
  else
    reply
      .code(problem.status)
      .headers({ ...problem.headers })
      .send(problem.body);
  return reply;
}

export function responseOrThrow(error: unknown): Response {
  const problem = problemOf(error);
  if (problem === null) throw error;
  return new Response(problem.body, { status: problem.status, headers: problem.headers });
}

/** Hono keeps a handler's error to itself, and has answered it by then. */
function staleResponse(context: HonoContextLike): void {
  const { error } = context as { readonly error?: unknown };
  const problem = problemOf(error);
  if (problem === null) return;
  const { status, headers, body } = problem;
  (context as { res?: Response }).res = new Response(body, { status, headers });
}
