/** What a turn sends to one connection leaves in as few frames as possible: after the turn, not in it. */

export interface Flushable {
  flush(): void;
}

/** A turn is synchronous: what is deferred beyond it finds all that it has sent. */
export class FlushQueue {
  private readonly defer: (run: () => void) => void;
  private dirty: Flushable[] = [];

  /** `defer` runs its argument after the current turn and before anything else arrives: queueMicrotask, or as good as that. */
  constructor(defer: (run: () => void) => void) {
    this.defer = defer;
  }

  add(each: Flushable): void {
    this.dirty.push(each);
    if (this.dirty.length === 1) this.defer(() => this.flush());
  }

  private flush(): void {
    const { dirty } = this;
    this.dirty = [];
    for (const each of dirty) each.flush();
  }
}
