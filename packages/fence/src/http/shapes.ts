/** What is used of each framework. Express's request and response are those of node:http. */
import type { IncomingMessage, ServerResponse } from "node:http";

import type { VerifiedSequencer } from "../sequencer.js";

/** The cluster vouches for resource and token; `holder` is where it came from, for reports. A guard takes it as its lock. */
export interface HttpFenced extends VerifiedSequencer {
  readonly holder?: string;
}

/**
 * Names the lock that a request needs, such as `doc:${request.params.id}`: a sequencer of another one is refused. `fence` is what came, for
 * a lock whose name isn't known beforehand, such as any slot of a semaphore.
 */
export type ResourceOf<Request> = (request: Request, fence: HttpFenced) => string;

export type NextFunction = (error?: unknown) => void;

export interface FastifyRequestLike {
  readonly headers: IncomingMessage["headers"];
  readonly ip: string;
  readonly raw: IncomingMessage;
}

export interface FastifyReplyLike {
  readonly sent: boolean;
  readonly raw: ServerResponse;
  code(status: number): FastifyReplyLike;
  headers(headers: Record<string, string>): FastifyReplyLike;
  send(body: string): unknown;
}

export interface HonoContextLike {
  readonly req: { header(name: string): string | undefined; readonly raw: { readonly signal: AbortSignal } };
  readonly env: unknown;
  set(key: "fence", value: HttpFenced): void;
}

/** The address of who sent it, where @hono/node-server tells it. */
export function honoAddress(context: HonoContextLike): string | undefined {
  const env = context.env as { readonly incoming?: IncomingMessage } | null | undefined;
  return env?.incoming?.socket?.remoteAddress;
}
