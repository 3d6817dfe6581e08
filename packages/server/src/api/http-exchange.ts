/** An exchange with a socket behind it: answers leave as HTTP, and a client that goes is noticed. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { remoteOf } from "../upgrades.js";
import type { Answer } from "./answers.js";
import type { EventSink, Exchange } from "./exchange.js";
import { apiLimits } from "./limits.js";

export interface HttpExchangeOptions {
  readonly query: string;
  readonly parameter: string;
  readonly body: unknown;
  /** What a stream may have unread. */
  readonly bufferedBytesMax: number;
  onSlowReader(): void;
}

export const commonHeaders = { "cache-control": "no-store", "x-content-type-options": "nosniff" };

export class HttpExchange implements Exchange {
  readonly remote: string;
  readonly query: string;
  readonly parameter: string;
  readonly body: unknown;
  private readonly request: IncomingMessage;
  private readonly response: ServerResponse;
  private readonly options: HttpExchangeOptions;
  private gone: (() => void) | null = null;
  private isAnswered = false;

  constructor(request: IncomingMessage, response: ServerResponse, options: HttpExchangeOptions) {
    this.request = request;
    this.response = response;
    this.options = options;
    this.remote = remoteOf(request);
    this.query = options.query;
    this.parameter = options.parameter;
    this.body = options.body;
  }

  /** The answer has left, or nobody is there to take it. */
  onOver(): void {
    const { gone } = this;
    this.gone = null;
    gone?.();
  }

  header(name: string): string | undefined {
    const value = this.request.headers[name];
    return Array.isArray(value) ? value.join(", ") : value;
  }

  answer(answer: Answer): void {
    if (this.isAnswered) return;
    this.isAnswered = true;
    this.gone = null;
    sendAnswer(this.request, this.response, answer);
  }

  stream(): EventSink {
    const { response, options } = this;
    this.isAnswered = true;
    response.writeHead(200, {
      ...commonHeaders,
      "content-type": "text/event-stream",
      // Of proxies that would wait for more of it.
      "x-accel-buffering": "no",
    });
    return {
      write: (text) => {
        if (response.destroyed || response.writableEnded) return false;
        if (response.writableLength + Buffer.byteLength(text) <= options.bufferedBytesMax) {
          response.write(text);
          return true;
        }
        options.onSlowReader();
        response.destroy();
        return false;
      },
      end: () => {
        this.gone = null;
        response.end();
      },
    };
  }

  onGone(run: () => void): void {
    this.gone = run;
  }
}

export function sendAnswer(request: IncomingMessage, response: ServerResponse, answer: Answer): void {
  const { status, body, headers = {}, isProblem = false, redirectTo } = answer;
  if (response.destroyed || response.headersSent) return;
  const all: Record<string, string | number> = { ...commonHeaders, ...headers };
  if (redirectTo !== undefined) all["location"] = `http://${redirectTo}${request.url ?? "/"}`;
  if (body === null) {
    response.writeHead(status, all);
    response.end();
    return;
  }
  const bytes = Buffer.from(`${JSON.stringify(body)}\n`);
  if (bytes.length > apiLimits.smallBytes) response.setTimeout(apiLimits.unreadMs, () => response.destroy());
  all["content-type"] = isProblem ? "application/problem+json" : "application/json";
  all["content-length"] = bytes.length;
  response.writeHead(status, all);
  // Node leaves the body out of an answer to HEAD.
  response.end(bytes);
}
