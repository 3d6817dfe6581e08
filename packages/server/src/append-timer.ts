/** How long appends take from their sending to their acknowledgement, peer by peer. */
import type { Index, Message, NodeId } from "@holdfast/raft";

interface Sent {
  readonly lastIndex: Index;
  readonly atMs: number;
}

/** Appends timed at once for each peer: those beyond the window of replication were lost with their link. */
const timedMax = 64;

export class AppendTimer {
  private readonly sent = new Map<NodeId, Sent[]>();

  onSent(to: NodeId, message: Message, nowMs: number): void {
    if (message.kind !== "append") return;
    const last = message.entries.at(-1);
    if (last === undefined) return;
    const waiting = this.sent.get(to);
    if (waiting === undefined) this.sent.set(to, [{ lastIndex: last.index, atMs: nowMs }]);
    else if (waiting.length < timedMax) waiting.push({ lastIndex: last.index, atMs: nowMs });
  }

  /** Calls `observe` with the seconds of each append that this answer acknowledges. */
  onReceived(from: NodeId, message: Message, nowMs: number, observe: (seconds: number) => void): void {
    if (message.kind !== "appendAccepted") return;
    const waiting = this.sent.get(from);
    while (waiting !== undefined && waiting.length > 0) {
      const first = waiting[0] as Sent;
      if (first.lastIndex > message.matchIndex) return;
      waiting.shift();
      observe((nowMs - first.atMs) / 1_000);
    }
  }

  /** Leadership or a link is lost: what is under way will not be answered. */
  clear(): void {
    this.sent.clear();
  }
}
