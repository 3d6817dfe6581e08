/** One request of `doctor --guard` to a resource behind HTTP, and what its answer says. Redirects aren't followed: a sequencer is nobody else's. */
import { request as httpRequest } from "node:http";
import type { IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { CommandFailure } from "../../command-failure.js";

export interface HttpTarget {
  readonly url: string;
  readonly method: string;
  readonly body: string | null;
  readonly timeoutMs: number;
}

export interface HttpAnswer {
  readonly status: number;
  /** Of a problem document as the guards of @holdfast/fence/http send it: its members, or none. */
  readonly problem: Readonly<Record<string, unknown>>;
}

/** More than any problem of ours has. The rest isn't read. */
const bodyBytesMax = 65_536;

/** Rejects with CommandFailure `unreachable` when there is no answer in time. */
export async function ask(target: HttpTarget, sequencer: string | null): Promise<HttpAnswer> {
  const { url, method, body, timeoutMs } = target;
  const headers: Record<string, string | number> = { "user-agent": "holdfast-doctor", connection: "close" };
  if (sequencer !== null) headers["holdfast-sequencer"] = sequencer;
  if (body !== null) {
    headers["content-type"] = isJson(body) ? "application/json" : "text/plain; charset=utf-8";
    headers["content-length"] = Buffer.byteLength(body);
  }
  return new Promise((resolve, reject) => {
    const send = url.startsWith("https:") ? httpsRequest : httpRequest;
    const sent = send(url, { method, headers }, (response) => void answerOf(response).then(resolve, reject));
    const timer = setTimeout(() => sent.destroy(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs);
    sent.on("close", () => clearTimeout(timer));
    sent.on("error", (error) =>
      reject(new CommandFailure("error", "unreachable", `${method} failed: ${error.message}`)),
    );
    sent.end(body ?? "");
  });
}

async function answerOf(response: IncomingMessage): Promise<HttpAnswer> {
  const status = response.statusCode ?? 0;
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > bodyBytesMax) break;
  }
  const type = (response.headers["content-type"] ?? "").split(";")[0]?.trim().toLowerCase();
  const members: unknown = type === "application/problem+json" ? parsed(Buffer.concat(chunks).toString("utf8")) : null;
  return {
    status,
    problem: typeof members === "object" && members !== null ? (members as Record<string, unknown>) : {},
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function isJson(text: string): boolean {
  return parsed(text) !== null;
}
