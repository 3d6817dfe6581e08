/**
 * Questions to the HTTP side of a node (http.ts), for nodes that join and for the command line. Not by fetch, which speaks to no port of a
 * list (6000, 6667, 10080), hides why nothing came, and goes on without keeping the process alive when a connection is closed at once.
 * Nothing of the server is loaded with it.
 */
import { request } from "node:http";
import type { ClientRequest, IncomingMessage } from "node:http";

/**
 * | kind    | no answer because                                                         |
 * |---------|---------------------------------------------------------------------------|
 * | silent  | nobody answered, or not all of it came in time                            |
 * | refused | the node says why (problem details, RFC 9457); `code` is there, or null   |
 * | foreign | what answers isn't a node of this release                                 |
 */
export type GetErrorKind = "silent" | "refused" | "foreign";

/** The message is a sentence's end for a person, without the endpoint. */
export class GetError extends Error {
  readonly kind: GetErrorKind;
  readonly code: string | null;

  constructor(kind: GetErrorKind, message: string, code: string | null = null) {
    super(message);
    this.name = "GetError";
    this.kind = kind;
    this.code = code;
  }
}

export interface GetOptions {
  /** From 1 to 2^31 - 1. While it runs it keeps the process alive. */
  readonly timeoutMs: number;
  /** Gives up; what waits rejects with GetError. */
  readonly stop?: AbortSignal;
}

/** A checkup has some kilobytes; a problem less. */
const answerBytesMax = 4 * 1_048_576;

/** The JSON object at `path` of `endpoint`, "host:port", within the time as a whole. Rejects with GetError. */
export async function getJson<T>(endpoint: string, path: string, options: GetOptions): Promise<T> {
  return withExchange(endpoint, path, options, `no answer within ${options.timeoutMs} ms`, async (exchange) => {
    const response = await exchange.response;
    const body = objectIn(await textOf(response));
    if (response.statusCode !== 200) throw refusalIn(response, body);
    if (body === null) throw new GetError("foreign", "it answers with something that is no JSON object");
    return body as T;
  });
}

/** The bytes at `path` as they come, given up after `timeoutMs` without any. Throws GetError. */
export async function* getBytes(endpoint: string, path: string, options: GetOptions): AsyncGenerator<Uint8Array> {
  const exchange = new Exchange(endpoint, path, options, `nothing came for ${options.timeoutMs} ms`);
  try {
    const response = await exchange.response;
    exchange.restart();
    if (response.statusCode !== 200) throw refusalIn(response, objectIn(await textOf(response)));
    for await (const bytes of response as AsyncIterable<Buffer>) {
      // The one who takes them may be slow: that is no silence of the node's.
      exchange.pause();
      yield bytes;
      exchange.restart();
    }
  } catch (error) {
    throw exchange.errorFor(error);
  } finally {
    exchange.end();
  }
}

async function withExchange<T>(
  endpoint: string,
  path: string,
  options: GetOptions,
  late: string,
  body: (exchange: Exchange) => Promise<T>,
): Promise<T> {
  const exchange = new Exchange(endpoint, path, options, late);
  try {
    return await body(exchange);
  } catch (error) {
    throw exchange.errorFor(error);
  } finally {
    exchange.end();
  }
}

/** One request and its response, given up at a deadline that can be moved. */
class Exchange {
  readonly response: Promise<IncomingMessage>;
  readonly #timeoutMs: number;
  readonly #late: string;
  readonly #stop: AbortSignal | null;
  readonly #onStop = (): void => this.#giveUp("it was given up");
  #asked: ClientRequest | null = null;
  #answer: IncomingMessage | null = null;
  /** What comes of a connection that was cut says nothing of why. */
  #reason: string | null = null;
  #timer: NodeJS.Timeout | null = null;

  constructor(endpoint: string, path: string, { timeoutMs, stop }: GetOptions, late: string) {
    this.#timeoutMs = timeoutMs;
    this.#late = late;
    this.#stop = stop ?? null;
    this.response = new Promise((resolve, reject) => {
      const asked = request(`http://${endpoint}${path}`);
      this.#asked = asked;
      asked.once("response", (response) => {
        this.#answer = response;
        resolve(response);
      });
      asked.on("error", reject);
      asked.end();
    });
    this.restart();
    this.#stop?.addEventListener("abort", this.#onStop, { once: true });
    if (this.#stop?.aborted === true) this.#onStop();
  }

  restart(): void {
    this.pause();
    this.#timer = setTimeout(() => this.#giveUp(this.#late), this.#timeoutMs);
  }

  pause(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  /** What is left of the answer is of no use. */
  end(): void {
    this.pause();
    this.#stop?.removeEventListener("abort", this.#onStop);
    if (this.#answer?.complete !== true) this.#asked?.destroy();
  }

  errorFor(error: unknown): GetError {
    if (this.#reason !== null) return new GetError("silent", this.#reason);
    if (error instanceof GetError) return error;
    if (this.#answer !== null) return new GetError("silent", "the connection broke in the midst of the answer");
    // "socket hang up", "read ECONNRESET", "write EPIPE": which of them it is depends on the moment.
    if (closedCodes.has(codeOf(error))) return new GetError("silent", "the connection was closed without an answer");
    return new GetError("silent", messageOf(error));
  }

  #giveUp(reason: string): void {
    this.#reason = reason;
    const error = new Error(reason);
    if (this.#answer === null) this.#asked?.destroy(error);
    else this.#answer.destroy(error);
  }
}

async function textOf(response: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of response as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > answerBytesMax) throw new GetError("foreign", `it answers with more than ${answerBytesMax} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts).toString("utf8");
}

function refusalIn({ statusCode }: IncomingMessage, body: object | null): GetError {
  const { code, detail } = (body ?? {}) as { readonly code?: unknown; readonly detail?: unknown };
  if (typeof detail !== "string") return new GetError("foreign", `HTTP status ${statusCode}`);
  return new GetError("refused", detail, typeof code === "string" ? code : null);
}

function objectIn(text: string): object | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" ? value : null;
  } catch {
    return null;
  }
}

const closedCodes: ReadonlySet<unknown> = new Set(["ECONNRESET", "EPIPE"]);

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : null;
}

/** With several addresses for one name Node's error has an empty message of its own. */
function messageOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(messageOf).join("; ");
  return error instanceof Error ? error.message : String(error);
}
