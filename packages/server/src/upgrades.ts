/** Small answers where there is no request to answer: to upgrades that are not taken, and to what is no HTTP. */
import { STATUS_CODES } from "node:http";
import { invalidArgument } from "./api/answers.js";
import type { Answer } from "./api/answers.js";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";

/** Answers and closes; the socket is gone at the latest when the other side has read it or a second has passed. */
export function answerUpgrade(socket: Duplex, status: number): void {
  end(socket, `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? "Refused"}`, ["Content-Length: 0"], "");
}

/** Some clients would speak HTTP/2, and ask for it with their first request: an upgrade takes the request away from the server. */
export function answerOtherUpgrade(socket: Duplex): void {
  sendAnswer(socket, invalidArgument("Upgrade", "is not websocket: make requests in HTTP/1.1, without this header"));
}

function sendAnswer(socket: Duplex, { status, body }: Answer): void {
  const text = `${JSON.stringify(body)}\n`;
  const head = ["Content-Type: application/problem+json", `Content-Length: ${Buffer.byteLength(text)}`];
  end(socket, `HTTP/1.1 ${status} ${STATUS_CODES[status]}`, head, text);
}

function end(socket: Duplex, line: string, head: readonly string[], body: string): void {
  socket.end(`${[line, ...head, "Connection: close"].join("\r\n")}\r\n\r\n${body}`);
  const timer = setTimeout(() => socket.destroy(), 1_000);
  timer.unref();
  socket.once("close", () => clearTimeout(timer));
}

/**
 * Whoever waits on this socket for the answer to a whole request gets none any more: this would be taken for it, or for a part of it if it
 * has begun.
 */
export function answerGarbage({ code }: NodeJS.ErrnoException, socket: Duplex): void {
  if (isAnswering(socket) || !socket.writable) {
    socket.destroy();
    return;
  }
  sendAnswer(socket, garbageAnswer(code));
}

/** Node keeps the response whose turn it is there, and has no other way to it. */
function isAnswering(socket: Duplex & { readonly _httpMessage?: ServerResponse | null }): boolean {
  const response = socket._httpMessage ?? null;
  return response !== null && (response.headersSent || response.req.complete);
}

function garbageAnswer(code: string | undefined): Answer {
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") return invalidArgument("request", "did not come in time", 408);
  if (code === "HPE_HEADER_OVERFLOW") return invalidArgument("head", "is too long", 431);
  return invalidArgument("request", "is no HTTP/1.1");
}

/** "address:port" of the caller, for the log. */
export function remoteOf(request: IncomingMessage): string {
  return `${request.socket.remoteAddress ?? "?"}:${request.socket.remotePort ?? 0}`;
}
