/** One question to a node's HTTP side. Not by fetch, which knows ports that it doesn't speak to (6000, 10080), and hides why. */
import { request } from "node:http";
import type { IncomingMessage } from "node:http";

/** Somebody answered, but not as a node of this release does. */
export class ForeignError extends Error {}

/** A checkup has some kilobytes. */
const answerBytesMax = 4 * 1024 * 1024;

/** Rejects with ForeignError, or with why there is no whole answer within the time. */
export function getJson<T>(endpoint: string, path: string, timeoutMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const asked = request(`http://${endpoint}${path}`);
    const timer = setTimeout(() => asked.destroy(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs);
    const end = (settle: () => void): void => {
      clearTimeout(timer);
      settle();
    };
    asked.once("response", (response) => {
      bodyOf(response).then(
        (text) => end(() => settleWith<T>(response, text, resolve, reject)),
        (error: unknown) => end(() => reject(error)),
      );
    });
    asked.once("error", (error) => end(() => reject(error)));
    asked.end();
  });
}

async function bodyOf(response: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of response as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > answerBytesMax) throw new ForeignError(`it answers with more than ${answerBytesMax} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts).toString("utf8");
}

function settleWith<T>(
  { statusCode = 0 }: IncomingMessage,
  text: string,
  resolve: (value: T) => void,
  reject: (error: Error) => void,
): void {
  const body = objectIn(text);
  if (statusCode === 200 && body !== null) return resolve(body as T);
  if (statusCode === 200) return reject(new ForeignError("it answers with something that is no JSON object"));
  const { detail } = (body ?? {}) as { readonly detail?: unknown };
  reject(new ForeignError(typeof detail === "string" ? detail : `HTTP status ${statusCode}`));
}

function objectIn(text: string): object | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" ? value : null;
  } catch {
    return null;
  }
}

/** Of an error of Node's: with several addresses for one name its message is empty. */
export function messageOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(messageOf).join("; ");
  return error instanceof Error ? error.message : String(error);
}
