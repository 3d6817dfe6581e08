/** A list of the numbers 0 to count - 1 in which an item can be taken out and put back where it was, the last one taken out first. */
export class Chain {
  private readonly nextOf: Int32Array;
  private readonly previousOf: Int32Array;
  private readonly end: number;

  constructor(count: number) {
    this.end = count;
    this.nextOf = Int32Array.from({ length: count + 1 }, (_, item) => (item === count ? 0 : item + 1));
    this.previousOf = Int32Array.from({ length: count + 1 }, (_, item) => (item === 0 ? count : item - 1));
  }

  /** -1: the list is empty. */
  get first(): number {
    return this.itemAt(this.nextOf[this.end] ?? this.end);
  }

  /** -1: it is the last one. Of an item that was taken out, what came after it then. */
  after(item: number): number {
    return this.itemAt(this.nextOf[item] ?? this.end);
  }

  takeOut(item: number): void {
    const next = this.nextOf[item] ?? this.end;
    const previous = this.previousOf[item] ?? this.end;
    this.nextOf[previous] = next;
    this.previousOf[next] = previous;
  }

  putBack(item: number): void {
    this.nextOf[this.previousOf[item] ?? this.end] = item;
    this.previousOf[this.nextOf[item] ?? this.end] = item;
  }

  private itemAt(item: number): number {
    return item === this.end ? -1 : item;
  }
}
