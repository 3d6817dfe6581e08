/** Messages to the peers, and what their answers tell beside the core's business. */
import type { Message, NodeId, Outbound, Raft } from "@holdfast/raft";
import { AppendTimer } from "./append-timer.js";
import type { HostMetrics, NodeHostParts } from "./node-host-types.js";
import type { TurnLoop } from "./turn-loop.js";

export interface PeerTrafficParts {
  readonly loop: Pick<TurnLoop, "nowMs">;
  readonly raft: Raft;
  readonly links: Pick<NodeHostParts["links"], "send" | "notePromise">;
  readonly metrics: Pick<HostMetrics, "observeAppend">;
}

export class PeerTraffic {
  private readonly parts: PeerTrafficParts;
  private readonly appends: AppendTimer = new AppendTimer();

  constructor(parts: PeerTrafficParts) {
    this.parts = parts;
  }

  send(messages: readonly Outbound[]): void {
    if (messages.length === 0) return;
    const { nowMs } = this.parts.loop;
    const byPeer = new Map<NodeId, Message[]>();
    for (const { to, message } of messages) {
      this.appends.onSent(to, message, nowMs);
      const others = byPeer.get(to);
      if (others === undefined) byPeer.set(to, [message]);
      else others.push(message);
    }
    for (const [to, all] of byPeer) this.parts.links.send(to, all);
  }

  /** Only the leader that it was sent to has the very entries that it speaks of; in any other log others may stand there. */
  noteAnswer(from: NodeId, message: Message): void {
    const { loop, raft, links, metrics } = this.parts;
    if (message.kind !== "appendAccepted" || message.term !== raft.term || raft.role !== "leader") return;
    const term = raft.termAt(message.matchIndex);
    if (term === null) return;
    this.appends.onReceived(from, message, loop.nowMs, (seconds) => metrics.observeAppend(from, seconds));
    links.notePromise(from, { term: message.term, last: { term, index: message.matchIndex } });
  }

  /** Leadership is lost: what is under way will not be answered. */
  forgetAppends(): void {
    this.appends.clear();
  }
}
