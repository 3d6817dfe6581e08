/**
 * A client's connection without a socket: what comes over HTTP reaches the gateway as what a websocket client sends, so there is one way to
 * the lock machine. What the gateway says is handled after its turn, never in it.
 */
import { limits } from "@holdfast/wire";
import type { ClientMessage, ServerMessage } from "@holdfast/wire";
import type { ClientConnection, ClientEvents } from "../ports.js";

export type Told = Exclude<ServerMessage, { readonly kind: "welcome" }>;

export interface ApiConnectionOwner {
  onMessage(message: Told): void;
  /** The gateway has closed it. Nothing comes after this. */
  onClosed(): void;
}

const hello: ClientMessage = {
  kind: "hello",
  protocol: limits.protocolVersion,
  features: [],
  clusterId: null,
  seenIndex: 0,
  info: "http",
};

export class ApiConnection implements ClientConnection {
  readonly id: number;
  readonly remote: string;
  private readonly clients: ClientEvents;
  private readonly owner: ApiConnectionOwner;
  private inbox: (ServerMessage | null)[] = [];
  private isOpen = true;
  private node: string | null = null;

  constructor(id: number, remote: string, clients: ClientEvents, owner: ApiConnectionOwner) {
    this.id = id;
    this.remote = remote;
    this.clients = clients;
    this.owner = owner;
    clients.onOpened(this);
    this.tell(hello);
  }

  /** The node's id, once it has said something. */
  get nodeId(): string | null {
    return this.node;
  }

  tell(...messages: readonly ClientMessage[]): void {
    if (this.isOpen) this.clients.onFrame(this, { bytes: 0, messages: () => messages });
  }

  /** Nothing more is wanted, nor comes. What was told and not handled yet is dropped. */
  end(): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    this.inbox = [];
    this.clients.onClosed(this);
  }

  // What the gateway asks of it.

  send(message: ServerMessage): void {
    this.receive(message);
  }

  /** There is no socket to hold up: the open requests are counted instead. */
  pause(): void {}

  resume(): void {}

  close(): void {
    this.receive(null);
  }

  private receive(message: ServerMessage | null): void {
    if (!this.isOpen) return;
    this.inbox.push(message);
    if (this.inbox.length === 1) queueMicrotask(() => this.drain());
  }

  private drain(): void {
    const messages = this.inbox;
    this.inbox = [];
    for (const message of messages) {
      if (!this.isOpen) return;
      if (message === null) {
        this.end();
        this.owner.onClosed();
      } else if (message.kind === "welcome") this.node = message.node;
      else this.owner.onMessage(message);
    }
  }
}
