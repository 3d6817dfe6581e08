/**
 * The queue of one lock: claims in the order of their requests, linked both ways. To join, to leave from the middle and to find the next
 * one cost the same for ten waiters and for ten thousand.
 */
import { assert } from "./assert.js";
import type { Acquire, Claim } from "./records.js";

/** Claims that joined one block at most. */
const blockSize = 128;

/** A stretch of the queue that knows how many still stand in it, so that a place in the queue is found without walking all of it. */
export class QueueBlock {
  previous: QueueBlock | null;
  next: QueueBlock | null = null;
  joined = 0;
  count = 0;

  constructor(previous: QueueBlock | null) {
    this.previous = previous;
  }
}

export class WaitQueue {
  first: Claim | null = null;
  last: Claim | null = null;
  count = 0;
  private lastBlock: QueueBlock = new QueueBlock(null);

  push(claim: Claim): void {
    assert(claim.block === null, "a claim joins a queue once");
    claim.block = this.blockForNext();
    claim.block.joined += 1;
    claim.block.count += 1;
    claim.previous = this.last;
    if (this.last === null) this.first = claim;
    else this.last.next = claim;
    this.last = claim;
    this.count += 1;
  }

  remove(claim: Claim): void {
    const { block } = claim;
    assert(block !== null, "a claim leaves a queue that it is in");
    if (claim.previous === null) this.first = claim.next;
    else claim.previous.next = claim.next;
    if (claim.next === null) this.last = claim.previous;
    else claim.next.previous = claim.previous;
    claim.previous = null;
    claim.next = null;
    claim.block = null;
    this.count -= 1;
    block.count -= 1;
    if (block.count === 0) this.dropBlock(block);
  }

  /** How many stand before it. Walks one block, then block by block. */
  countBefore(claim: Claim): number {
    const { block } = claim;
    assert(block !== null, "a waiting claim stands in a block");
    let count = 0;
    for (let before = claim.previous; before !== null && before.block === block; before = before.previous) count += 1;
    for (let before = block.previous; before !== null; before = before.previous) count += before.count;
    return count;
  }

  private blockForNext(): QueueBlock {
    if (this.lastBlock.joined < blockSize) return this.lastBlock;
    const block = new QueueBlock(this.lastBlock);
    this.lastBlock.next = block;
    this.lastBlock = block;
    return block;
  }

  /** Nobody stands in it. The last one is used again; others are unlinked, so there are never more blocks than claims, but for one. */
  private dropBlock(block: QueueBlock): void {
    if (block.next === null) {
      block.joined = 0;
      return;
    }
    block.next.previous = block.previous;
    if (block.previous !== null) block.previous.next = block.next;
  }
}

/** Waiting acquires, the oldest request first. One that is pushed twice comes out twice. */
export class AcquireHeap {
  private readonly items: Acquire[] = [];

  push(acquire: Acquire): void {
    const { items } = this;
    let at = items.length;
    items.push(acquire);
    while (at > 0) {
      const parent = (at - 1) >>> 1;
      const above = items[parent] as Acquire;
      if (above.index <= acquire.index) break;
      items[at] = above;
      at = parent;
    }
    items[at] = acquire;
  }

  pop(): Acquire | null {
    const { items } = this;
    const top = items[0];
    const last = items.pop();
    if (top === undefined || last === undefined) return null;
    if (items.length > 0) this.sinkFromTop(last);
    return top;
  }

  private sinkFromTop(acquire: Acquire): void {
    const { items } = this;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= items.length) break;
      const right = items[child + 1];
      if (right !== undefined && right.index < (items[child] as Acquire).index) child += 1;
      const below = items[child] as Acquire;
      if (below.index >= acquire.index) break;
      items[at] = below;
      at = child;
    }
    items[at] = acquire;
  }
}
