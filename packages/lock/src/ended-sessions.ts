/** The last sessions that ended, with their reasons, in a ring. */
import type { EndedSession } from "./records.js";
import type { SessionId } from "./types.js";

export class EndedSessions {
  private readonly capacity: number;
  private readonly ring: EndedSession[] = [];
  /** Where the next one goes once the ring is full: at the oldest. */
  private oldest = 0;
  private readonly byId: Map<SessionId, EndedSession> = new Map();

  constructor(capacity: number) {
    this.capacity = capacity;
  }

  add(session: EndedSession): void {
    this.byId.set(session.id, session);
    if (this.ring.length < this.capacity) {
      this.ring.push(session);
      return;
    }
    const dropped = this.ring[this.oldest] as EndedSession;
    this.byId.delete(dropped.id);
    this.ring[this.oldest] = session;
    this.oldest = (this.oldest + 1) % this.capacity;
  }

  find(id: SessionId): EndedSession | null {
    return this.byId.get(id) ?? null;
  }

  /** Oldest first. */
  list(): EndedSession[] {
    return [...this.ring.slice(this.oldest), ...this.ring.slice(0, this.oldest)];
  }
}
