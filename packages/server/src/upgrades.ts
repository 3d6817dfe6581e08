/** Small answers to HTTP upgrades that are not taken. */
import { STATUS_CODES } from "node:http";
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";

/** Answers and closes; the socket is gone at the latest when the other side has read it or a second has passed. */
export function answerUpgrade(socket: Duplex, status: number): void {
  const text = STATUS_CODES[status] ?? "Refused";
  socket.end(`HTTP/1.1 ${status} ${text}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
  const timer = setTimeout(() => socket.destroy(), 1_000);
  timer.unref();
  socket.once("close", () => clearTimeout(timer));
}

/** "address:port" of the caller, for the log. */
export function remoteOf(request: IncomingMessage): string {
  return `${request.socket.remoteAddress ?? "?"}:${request.socket.remotePort ?? 0}`;
}
