/** Whether a peer's refusal means that this node must end. */
import type { NodeId } from "@holdfast/raft";
import type { ExitName } from "./exit-codes.js";
import type { MetPeer } from "./peer-links.js";
import type { Clock, PeerRefusal, Timer } from "./ports.js";

export interface FatalRefusal {
  readonly exit: ExitName;
  readonly refusal: PeerRefusal;
}

export interface FatalRefusalsParts {
  readonly clock: Clock;
  /** This node's cluster id, or of the cluster that it waits to join; null while it has neither. */
  clusterId(): string | null;
  met(): ReadonlyMap<NodeId, MetPeer>;
  onFatal(fatal: FatalRefusal): void;
}

/** Time to meet the others before a quarrel between two formed nodes is decided. */
const quarrelMs = 1_000;

/**
 * A formed peer that knows this node's id with another directory, or has its older promises, is right. Two formed nodes of different
 * clusters each think so: there the one ends that has more against it than for it, for one stray node must not end a whole cluster.
 */
export class FatalRefusals {
  private readonly parts: FatalRefusalsParts;
  private readonly quarrels = new Map<NodeId, PeerRefusal>();
  private timer: Timer | null = null;
  private isOver = false;

  constructor(parts: FatalRefusalsParts) {
    this.parts = parts;
  }

  onRefused(refusal: PeerRefusal, isPeerFormed: boolean): void {
    if (this.isOver || !isPeerFormed) return;
    switch (refusal.code) {
      case "wrong_instance":
        return this.end("wrongInstance", refusal);
      case "old_copy":
        return this.end("oldCopy", refusal);
      case "removed":
        return this.end("removed", refusal);
      case "unknown_node":
        // A formed node got what it has from a member: the peer is behind, or its log has an entry that won't stay.
        if (this.parts.clusterId() === null) return this.end("unknownNode", refusal);
        return;
      case "wrong_version":
        return this.end("wrongVersion", refusal);
      case "wrong_cluster":
        if (this.parts.clusterId() === null) return this.end("wrongCluster", refusal);
        return this.quarrel(refusal);
      case "wrong_address":
      case "incompatible":
      case "unauthorized":
        // A wrong line in a file, a rolling upgrade, a secret that is being changed: it may pass, and the log says it.
        return;
      default:
        assertNever(refusal.code);
    }
  }

  stop(): void {
    this.isOver = true;
    this.timer?.cancel();
  }

  private quarrel(refusal: PeerRefusal): void {
    this.quarrels.set(refusal.from, refusal);
    this.timer ??= this.parts.clock.setTimer(quarrelMs, () => {
      this.timer = null;
      this.decide();
    });
  }

  private decide(): void {
    if (this.isOver) return;
    const own = this.parts.clusterId();
    // With itself: one stray node against one member, while the others are down, decides nothing.
    const friends = 1 + [...this.parts.met().values()].filter((peer) => peer.clusterId === own).length;
    const [first] = this.quarrels.values();
    if (first !== undefined && this.quarrels.size > friends) return this.end("wrongCluster", first);
    this.quarrels.clear();
  }

  private end(exit: ExitName, refusal: PeerRefusal): void {
    this.stop();
    this.parts.onFatal({ exit, refusal });
  }
}

function assertNever(value: never): never {
  throw new Error(`unexpected refusal ${String(value)}`);
}
