/** First in, first out, at a constant cost; `shift` of an array moves all that stay, once they are many. */
const holesMax = 4_096;

export class Fifo<Item> {
  /** What was taken is let go of at once: it may be large. */
  private items: (Item | undefined)[] = [];
  private taken = 0;

  get length(): number {
    return this.items.length - this.taken;
  }

  get first(): Item | undefined {
    return this.items[this.taken];
  }

  clear(): void {
    this.items = [];
    this.taken = 0;
  }

  push(item: Item): void {
    this.items.push(item);
  }

  shift(): Item | undefined {
    const { first } = this;
    if (first === undefined) return undefined;
    this.items[this.taken] = undefined;
    this.taken += 1;
    if (this.length === 0) this.clear();
    else if (this.taken >= holesMax) {
      this.items = this.items.slice(this.taken);
      this.taken = 0;
    }
    return first;
  }
}
