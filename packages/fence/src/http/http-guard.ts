/**
 * A guard for handlers that write where nothing compares tokens. Each resource's requests have their turns, one after the other, and a
 * turn lasts until the handler has settled: between the comparison and the last write of a handler nobody else's write can come. That holds
 * within this process. It wraps handlers rather than standing before them, for only a handler's promise tells when it has settled: a
 * response that is closed, by a client that hung up, doesn't.
 */
import type { IncomingMessage, ServerResponse } from "node:http";

import { InvalidArgumentError } from "../errors.js";
import { described } from "../fence.js";
import type { FenceRegister } from "../guard.js";
import { checkOptionNames } from "../options.js";
import { StaleReporter, reportingOptionNames } from "../reporting.js";
import type { ReportingOptions } from "../reporting.js";
import type { SequencerKeys } from "../sequencer-keys.js";
import { keeperOf } from "./fence-keeper.js";
import type { FenceKeeper } from "./fence-keeper.js";
import {
  answerOrPass,
  answerOrThrow,
  fenceOfFastify,
  fenceOfHono,
  fenceOfMessage,
  responseOrThrow,
  sendOrThrow,
} from "./http-fence.js";
import { isStale } from "./problem.js";
import { checkFunction, checkKeys } from "./sequencer-header.js";
import type {
  FastifyReplyLike,
  FastifyRequestLike,
  HonoContextLike,
  HttpFenced,
  NextFunction,
  ResourceOf,
} from "./shapes.js";
import { TurnQueue } from "./turn-queue.js";

export interface HttpGuardOptions extends ReportingOptions {
  /** What sequencers are verified with: `sequencerKeys(...)`. */
  readonly keys: SequencerKeys;
  /** Where the highest tokens are kept: `memoryRegister()`, a register that outlives the process, or a guard with `read(lock)`. */
  readonly fences: FenceRegister<unknown> | FenceKeeper;
  /** So many requests wait for one resource; those beyond are answered with 503. 0 to 10,000, default 100. */
  readonly waitingMax?: number;
}

/**
 * Each wraps a handler that returns a promise, and settles it when its last write is done. Refused are requests without a good sequencer of
 * their lock (400, 401, 403, 503), and stale ones (412); a StaleTokenError that comes out of the handler is answered with 412, too.
 */
export interface HttpGuard {
  /** For `createServer`. What the handler rejects with otherwise comes out. */
  node(
    resourceOf: ResourceOf<IncomingMessage>,
    handler: (request: IncomingMessage & { fence: HttpFenced }, response: ServerResponse) => Promise<unknown>,
  ): (request: IncomingMessage, response: ServerResponse) => Promise<void>;
  express<Request extends IncomingMessage, Reply extends ServerResponse>(
    resourceOf: ResourceOf<Request>,
    handler: (request: Request & { fence: HttpFenced }, response: Reply, next: NextFunction) => Promise<unknown>,
  ): (request: Request, response: Reply, next: NextFunction) => void;
  fastify<Request extends FastifyRequestLike, Reply extends FastifyReplyLike>(
    resourceOf: ResourceOf<Request>,
    handler: (request: Request & { fence: HttpFenced }, reply: Reply) => Promise<unknown>,
  ): (request: Request, reply: Reply) => Promise<unknown>;
  /** The variable `fence` is set. */
  hono<Context extends HonoContextLike>(
    resourceOf: ResourceOf<Context>,
    handler: (context: Context) => Promise<Response>,
  ): (context: Context) => Promise<Response>;
}

const waitingMaxUsual = 100;
/** Each is an open socket, and a request that was read. */
const waitingMaxMax = 10_000;

/** @throws InvalidArgumentError naming the option. */
export function httpGuard(options: HttpGuardOptions): HttpGuard {
  checkOptionNames(options, "options", ["keys", "fences", "waitingMax", ...reportingOptionNames]);
  const { keys, waitingMax = waitingMaxUsual } = options;
  checkKeys(keys);
  if (!Number.isSafeInteger(waitingMax) || waitingMax < 0 || waitingMax > waitingMaxMax) {
    const problem = `must be a whole number from 0 to ${waitingMaxMax}, not ${described(waitingMax)}`;
    throw new InvalidArgumentError("options.waitingMax", problem);
  }
  return new WrappingGuard(keys, new FencedTurns(options, new TurnQueue(waitingMax)));
}

/** A turn: waited for, compared, held until the call has settled. */
class FencedTurns {
  readonly #keeper: FenceKeeper;
  readonly #queue: TurnQueue;
  readonly #reporter: StaleReporter;

  constructor(options: HttpGuardOptions, queue: TurnQueue) {
    this.#keeper = keeperOf(options.fences);
    this.#reporter = new StaleReporter("http", options);
    this.#queue = queue;
  }

  /** Resolves with null, having done nothing, when the client is gone by the time its turn comes. */
  take<T>(fence: HttpFenced, isGone: () => boolean, call: () => Promise<T>): Promise<T | null> {
    return this.#queue.take(fence.resource, async () => {
      if (isGone()) return null;
      await this.#raise(fence);
      return call();
    });
  }

  async #raise(fence: HttpFenced): Promise<void> {
    const { resource, token, holder } = fence;
    const presented = { resource, token, ...(holder === undefined ? {} : { holder }) };
    try {
      await this.#keeper.read(presented);
    } catch (error) {
      throw isStale(error) ? this.#reporter.refusal(presented, error.highest) : error;
    }
  }
}

class WrappingGuard implements HttpGuard {
  readonly #keys: SequencerKeys;
  readonly #turns: FencedTurns;

  constructor(keys: SequencerKeys, turns: FencedTurns) {
    this.#keys = keys;
    this.#turns = turns;
  }

  node(
    resourceOf: ResourceOf<IncomingMessage>,
    handler: (request: IncomingMessage & { fence: HttpFenced }, response: ServerResponse) => Promise<unknown>,
  ): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
    checkFunction(resourceOf, "resourceOf");
    checkFunction(handler, "handler");
    return async (request, response) => {
      try {
        const fence = await fenceOfMessage(this.#keys, request, resourceOf);
        await this.#turns.take(fence, goneOf(response), async () =>
          handler(Object.assign(request, { fence }), response),
        );
      } catch (error) {
        answerOrThrow(response, error);
      }
    };
  }

  express<Request extends IncomingMessage, Reply extends ServerResponse>(
    resourceOf: ResourceOf<Request>,
    handler: (request: Request & { fence: HttpFenced }, response: Reply, next: NextFunction) => Promise<unknown>,
  ): (request: Request, response: Reply, next: NextFunction) => void {
    checkFunction(resourceOf, "resourceOf");
    checkFunction(handler, "handler");
    return (request, response, next) => {
      fenceOfMessage(this.#keys, request, resourceOf)
        .then((fence) =>
          this.#turns.take(fence, goneOf(response), async () =>
            handler(Object.assign(request, { fence }), response, next),
          ),
        )
        .catch((error: unknown) => answerOrPass(response, error, next));
    };
  }

  fastify<Request extends FastifyRequestLike, Reply extends FastifyReplyLike>(
    resourceOf: ResourceOf<Request>,
    handler: (request: Request & { fence: HttpFenced }, reply: Reply) => Promise<unknown>,
  ): (request: Request, reply: Reply) => Promise<unknown> {
    checkFunction(resourceOf, "resourceOf");
    checkFunction(handler, "handler");
    return async (request, reply) => {
      try {
        const fence = await fenceOfFastify(this.#keys, request, resourceOf);
        const result = await this.#turns.take(fence, goneOf(reply.raw), async () =>
          handler(Object.assign(request, { fence }), reply),
        );
        // Nobody is there to be answered.
        return result === null && reply.raw.destroyed ? reply : result;
      } catch (error) {
        return sendOrThrow(reply, error);
      }
    };
  }

  hono<Context extends HonoContextLike>(
    resourceOf: ResourceOf<Context>,
    handler: (context: Context) => Promise<Response>,
  ): (context: Context) => Promise<Response> {
    checkFunction(resourceOf, "resourceOf");
    checkFunction(handler, "handler");
    return async (context) => {
      try {
        const fence = await fenceOfHono(this.#keys, context, resourceOf);
        context.set("fence", fence);
        const isGone = (): boolean => context.req.raw.signal.aborted;
        return (await this.#turns.take(fence, isGone, async () => handler(context))) ?? new Response(null);
      } catch (error) {
        return responseOrThrow(error);
      }
    };
  }
}

/** A response is destroyed with its socket, and closed when it was sent. */
function goneOf(response: ServerResponse): () => boolean {
  return () => response.destroyed || response.closed;
}
