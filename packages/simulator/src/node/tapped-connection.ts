/** A client's connection as the gateway sees it, with an ear on the keepalives that a leader reads and acknowledges. */
import type { ClientConnection } from "@holdfast/server";
import type { ServerMessage } from "@holdfast/wire";

export class TappedConnection implements ClientConnection {
  readonly #inner: ClientConnection;
  readonly #onSend: (message: ServerMessage) => void;

  constructor(inner: ClientConnection, onSend: (message: ServerMessage) => void) {
    this.#inner = inner;
    this.#onSend = onSend;
  }

  get id(): number {
    return this.#inner.id;
  }

  get remote(): string {
    return this.#inner.remote;
  }

  send(message: ServerMessage): void {
    this.#onSend(message);
    this.#inner.send(message);
  }

  pause(): void {
    this.#inner.pause();
  }

  resume(): void {
    this.#inner.resume();
  }

  close(code: number, reason: string): void {
    this.#inner.close(code, reason);
  }
}
