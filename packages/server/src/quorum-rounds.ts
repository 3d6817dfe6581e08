/**
 * Who waits for which quorum round. All that gathers in one turn shares one `confirm`; its callbacks run once the round has confirmed
 * this leader and the state machine has applied up to the index that the round vouches for (ReadIndex, thesis 6.4).
 */
export interface RoundCallbacks {
  readonly onReady: () => void;
  readonly onFailed: () => void;
}

export class QuorumRounds {
  private gathering: RoundCallbacks[] = [];
  private readonly inFlight = new Map<number, RoundCallbacks[]>();
  /** Confirmed, but not yet applied; indexes rise. */
  private unapplied: { readonly index: number; readonly callbacks: RoundCallbacks[] }[] = [];
  private nextId = 1;

  gather(onReady: () => void, onFailed: () => void): void {
    this.gathering.push({ onReady, onFailed });
  }

  /** The id to confirm for all that gathered, or null when nothing did. */
  begin(): number | null {
    if (this.gathering.length === 0) return null;
    const id = this.nextId;
    this.nextId += 1;
    this.inFlight.set(id, this.gathering);
    this.gathering = [];
    return id;
  }

  onConfirmed(id: number, index: number): void {
    const callbacks = this.inFlight.get(id);
    if (callbacks === undefined) return;
    this.inFlight.delete(id);
    this.unapplied.push({ index, callbacks });
  }

  onUnconfirmed(id: number): void {
    const callbacks = this.inFlight.get(id);
    this.inFlight.delete(id);
    for (const { onFailed } of callbacks ?? []) onFailed();
  }

  onApplied(lastApplied: number): void {
    while (this.unapplied.length > 0 && (this.unapplied[0]?.index ?? 0) <= lastApplied) {
      for (const { onReady } of this.unapplied.shift()?.callbacks ?? []) onReady();
    }
  }

  /** Leadership is lost: what was confirmed but not yet answered isn't worth an answer any more. */
  failAll(): void {
    const failed = [...this.unapplied.flatMap(({ callbacks }) => callbacks), ...[...this.inFlight.values()].flat()];
    failed.push(...this.gathering);
    this.unapplied = [];
    this.inFlight.clear();
    this.gathering = [];
    for (const { onFailed } of failed) onFailed();
  }
}
