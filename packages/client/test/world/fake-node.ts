/** One node's ears: who is connected, and whether it hears. */
import { decodeClientFrame } from "@holdfast/wire";
import type { ClientMessage } from "@holdfast/wire";
import type { Listener, ServerSocket } from "./virtual-network.js";

interface NodeOwner {
  handle(node: FakeNode, socket: ServerSocket, message: ClientMessage): void;
  forget(socket: ServerSocket): void;
}

export class FakeNode implements Listener {
  readonly id: string;
  readonly endpoint: string;
  reach: Listener["reach"] = "up";
  /** Whom this node believes to lead. */
  leader: string | null = null;
  readonly greeted = new Set<ServerSocket>();
  private readonly owner: NodeOwner;

  constructor(id: string, endpoint: string, owner: NodeOwner) {
    this.id = id;
    this.endpoint = endpoint;
    this.owner = owner;
  }

  onOpened(): void {}

  onFrame(socket: ServerSocket, frame: Uint8Array): void {
    for (const message of decodeClientFrame(frame)) this.owner.handle(this, socket, message);
  }

  onClosed(socket: ServerSocket): void {
    this.greeted.delete(socket);
    this.owner.forget(socket);
  }
}
