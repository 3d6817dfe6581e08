/** One client's connection to one process of a node: in order in both directions, or broken. */
import type { ClientMessage, ServerMessage } from "@holdfast/wire";
import { decodeClientFrame, decodeServerFrame, encodeClientFrame, encodeServerFrame } from "@holdfast/wire";
import type { NodeHost } from "../../src/node-host.js";
import type { ClientConnection } from "../../src/ports.js";
import type { VirtualNode } from "./virtual-cluster.js";
import type { ProcessClock, VirtualClock } from "./virtual-clock.js";

/** The way between a client and a node. */
export interface UserPath {
  delayMs(): number;
  isCut(from: string, to: string): boolean;
  /** A node has sent this, whether or not it arrives. */
  onSent(node: VirtualNode, connection: UserConnection, message: ServerMessage): void;
}

export interface UserEnd {
  readonly name: string;
  readonly clock: ProcessClock;
  onMessage(connection: UserConnection, message: ServerMessage): void;
  onClosed(connection: UserConnection): void;
}

export class UserConnection implements ClientConnection {
  readonly id: number;
  readonly remote = "virtual:0";
  readonly node: VirtualNode;
  private readonly host: NodeHost | null;
  private readonly clock: VirtualClock;
  private readonly path: UserPath;
  private readonly end: UserEnd;
  /** One lost message breaks a direction: what comes after it is never delivered. */
  private isUpBroken = false;
  private isDownBroken = false;
  private isClosed = false;
  private upAtMs = 0;
  private downAtMs = 0;

  constructor(id: number, node: VirtualNode, clock: VirtualClock, path: UserPath, end: UserEnd) {
    this.id = id;
    this.node = node;
    this.host = node.host;
    this.clock = clock;
    this.path = path;
    this.end = end;
    this.goUp((host) => host.gateway.onOpened(this));
  }

  // From the client.

  sendUp(...messages: ClientMessage[]): void {
    const bytes = encodeClientFrame(messages);
    this.goUp((host) => host.gateway.onMessages(this, decodeClientFrame(bytes)));
  }

  /** The client closes it; the node notices when the news gets through. */
  drop(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.goUp((host) => host.gateway.onClosed(this));
  }

  /** The node's process is gone, and its sockets with it. */
  breakDown(): void {
    this.goDown(() => this.end.onClosed(this));
  }

  // From the node.

  send(message: ServerMessage): void {
    this.path.onSent(this.node, this, message);
    const bytes = encodeServerFrame([message]);
    this.goDown(() => {
      const [decoded] = decodeServerFrame(bytes);
      this.end.onMessage(this, decoded as ServerMessage);
    });
  }

  noteWaiting(): void {}

  close(): void {
    this.host?.gateway.onClosed(this);
    this.breakDown();
  }

  private goUp(run: (host: NodeHost) => void): void {
    if (this.path.isCut(this.end.name, this.node.id)) this.isUpBroken = true;
    if (this.isUpBroken) return;
    this.upAtMs = Math.max(this.upAtMs, this.clock.nowMs + this.path.delayMs());
    this.clock.at(this.upAtMs, () => {
      const { node, host } = this;
      node.clock.deliver(() => {
        if (host !== null && node.host === host) run(host);
      });
    });
  }

  private goDown(run: () => void): void {
    if (this.path.isCut(this.node.id, this.end.name)) this.isDownBroken = true;
    if (this.isDownBroken) return;
    this.downAtMs = Math.max(this.downAtMs, this.clock.nowMs + this.path.delayMs());
    this.clock.at(this.downAtMs, () => {
      this.end.clock.deliver(() => {
        if (!this.isClosed) run();
      });
    });
  }
}
