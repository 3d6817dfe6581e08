/** Answers to requests that don't get through, as RFC 9457 has them. */
import { STATUS_CODES } from "node:http";
import type { ServerResponse } from "node:http";

export interface HttpProblem {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** JSON. */
  readonly body: string;
}

/** Something is wrong with a request, before anything of it was done. */
export class RequestRefusal extends Error {
  readonly problem: HttpProblem;

  constructor(problem: HttpProblem, cause?: unknown) {
    super(problem.body, { cause });
    this.problem = problem;
  }
}

export const problemType = "application/problem+json";

export type ProblemCode =
  | "no_sequencer"
  | "bad_sequencer"
  | "wrong_resource"
  | "stale_token"
  | "unreachable"
  | "overloaded";

interface Facts {
  readonly code: ProblemCode;
  readonly detail: string;
  readonly retryable: boolean;
  readonly [name: string]: unknown;
}

export function problem(status: number, facts: Facts, headers: Readonly<Record<string, string>> = {}): HttpProblem {
  const body = { type: "about:blank", title: STATUS_CODES[status], status, ...facts };
  return {
    status,
    // What was refused once may be right with the next sequencer.
    headers: { "content-type": problemType, "cache-control": "no-store", ...headers },
    body: JSON.stringify(body),
  };
}

interface StaleFacts {
  readonly code?: unknown;
  readonly resource?: unknown;
  readonly presented?: unknown;
  readonly highest?: unknown;
}

/** Told by its code, for two copies of this package may be loaded. */
export function isStale(error: unknown): error is { resource: string; presented: number; highest: number } {
  const facts = error as StaleFacts | null | undefined;
  return facts?.code === "stale_token" && typeof facts.resource === "string";
}

/**
 * The answer that an error asks for: 412 for a StaleTokenError, from whatever guard it came, and what these functions refuse requests with;
 * null for anything else. For error handlers of your own.
 */
export function problemOf(error: unknown): HttpProblem | null {
  if (error instanceof RequestRefusal) return error.problem;
  if (!isStale(error)) return null;
  const { resource, presented, highest } = error;
  return problem(412, {
    code: "stale_token",
    detail: `token ${presented} for ${resource} is stale: token ${highest} has been accepted`,
    retryable: false,
    resource,
    presented,
    highest,
  });
}

/**
 * When it is too late for an answer, the connection is cut: half an answer must not pass for a whole one. There may be nobody to get it,
 * which is no error.
 */
export function answer(response: ServerResponse, { status, headers, body }: HttpProblem): void {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  response.writeHead(status, { ...headers, "content-length": Buffer.byteLength(body) });
  response.end(body);
}
