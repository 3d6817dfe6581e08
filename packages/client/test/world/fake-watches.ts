/** How the fake leader tells watches what changes. */
import type { Effect } from "@holdfast/lock";
import type { ClientMessage, LockChange } from "@holdfast/wire";
import type { FakeCluster } from "./fake-cluster.js";
import type { FakeNode } from "./fake-node.js";
import type { ServerSocket } from "./virtual-network.js";

type WatchMessage = Extract<ClientMessage, { readonly kind: "watch" }>;

interface FakeWatch {
  readonly node: FakeNode;
  readonly socket: ServerSocket;
  readonly message: WatchMessage;
}

export class FakeWatches {
  /** The next watch that comes back hears that changes are missing. */
  isForgetful = false;
  private readonly cluster: FakeCluster;
  private watches: FakeWatch[] = [];
  private told: { readonly index: number; readonly changes: readonly LockChange[] }[] = [];

  constructor(cluster: FakeCluster) {
    this.cluster = cluster;
  }

  /** What it has told, as a leader that has been started anew. */
  forgetHistory(): void {
    this.told = [];
  }

  get count(): number {
    return this.watches.length;
  }

  on(node: FakeNode, socket: ServerSocket, message: WatchMessage | Extract<ClientMessage, { kind: "unwatch" }>): void {
    const { cluster } = this;
    if (message.kind === "unwatch") {
      this.watches = this.watches.filter((each) => each.socket !== socket || each.message.id !== message.id);
      return;
    }
    const { id, after } = message;
    if (cluster.leader !== node.id) return cluster.refuse(node, socket, { id }, cluster.notLeader(node));
    cluster.commit(() => {
      const watch = { node, socket, message };
      this.watches.push(watch);
      if (after === null || this.isForgetful) {
        this.isForgetful = false;
        cluster.say(node, socket, { kind: "watching", id, index: cluster.lastIndex, isGap: true });
        return;
      }
      cluster.say(node, socket, { kind: "watching", id, index: after, isGap: false });
      for (const { index, changes } of this.told) if (index > after) this.tell(watch, index, changes);
    });
  }

  onEffects(index: number, effects: readonly Effect[]): void {
    const changes = effects.filter((effect) => effect.kind === "changed");
    if (changes.length === 0) return;
    this.told.push({ index, changes });
    for (const watch of this.watches) this.tell(watch, index, changes);
  }

  forget(socket: ServerSocket): void {
    this.watches = this.watches.filter((each) => each.socket !== socket);
  }

  onLeadershipLost(): void {
    this.watches = [];
  }

  private tell({ node, socket, message }: FakeWatch, index: number, changes: readonly LockChange[]): void {
    const { id, name, isPrefix } = message;
    const seen = changes.filter((change) => (isPrefix ? change.name.startsWith(name) : change.name === name));
    if (seen.length > 0) this.cluster.say(node, socket, { kind: "changes", id, index, changes: seen });
  }
}
