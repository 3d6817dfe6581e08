/**
 * Puts outputs on the disk in their order: one write in flight, and whatever queued meanwhile goes into the next one (group commit).
 * An output with nothing to write still waits its turn: its acknowledgements may rest on a write that is in flight.
 */
import type { Entry, HardState, IncomingChunk, Index, Outbound, Output } from "@holdfast/raft";
import type { Store, StoreWrite } from "@holdfast/storage";
import type { Clock } from "./ports.js";

export interface PersisterOptions {
  /** Outputs are merged into one write up to this many bytes of payload: bounds the time of one sync. */
  readonly writeBytesMax: number;
}

export interface PersisterEvents {
  /** Everything up to this output is durable, and its messages may go. In order of outputs. */
  onPersisted(number: number, send: readonly Outbound[]): void;
  /** Chunk of this node's own snapshot is durable. */
  onOwnChunk(chunk: IncomingChunk): void;
  /** The disk failed: nothing more is written, and the process must end. */
  onFailed(error: unknown): void;
  onSynced(seconds: number): void;
}

interface OutputItem {
  readonly kind: "output";
  readonly number: number;
  readonly hardState: HardState | null;
  readonly truncateFrom: Index | null;
  readonly entries: readonly Entry[];
  readonly chunk: IncomingChunk | null;
  readonly send: readonly Outbound[];
}

type Item =
  | OutputItem
  | { readonly kind: "ownChunk"; readonly chunk: IncomingChunk }
  | { readonly kind: "remove"; readonly through: Index };

export class Persister {
  private readonly queue: Item[] = [];
  private writing = false;
  private failed = false;
  /** Items that were queued and that are durable, since the start. */
  private queued = 0;
  private done = 0;
  private waiters: { readonly queued: number; readonly resolve: () => void }[] = [];
  private readonly options: PersisterOptions;
  private readonly store: Store;
  private readonly clock: Clock;
  private readonly events: PersisterEvents;

  constructor(options: PersisterOptions, store: Store, clock: Clock, events: PersisterEvents) {
    this.options = options;
    this.store = store;
    this.clock = clock;
    this.events = events;
  }

  get isIdle(): boolean {
    return !this.writing && this.queue.length === 0;
  }

  enqueue(output: Output): void {
    if (this.failed) return;
    const writes = hasWrite(output);
    if (!writes && this.isIdle) {
      // Nothing is in flight that an acknowledgement could rest on: it may go now.
      if (output.sendAfterPersist.length > 0) this.events.onPersisted(output.number, output.sendAfterPersist);
      return;
    }
    const { number, hardState, truncateFrom, entries, chunk, sendAfterPersist: send } = output;
    this.push({ kind: "output", number, hardState, truncateFrom, entries, chunk, send });
  }

  /** A chunk of the snapshot that this node takes itself. */
  enqueueOwnChunk(chunk: IncomingChunk): void {
    if (!this.failed) this.push({ kind: "ownChunk", chunk });
  }

  /** Entries up to here are covered by a complete snapshot. */
  enqueueRemoval(through: Index): void {
    if (!this.failed) this.push({ kind: "remove", through });
  }

  /** Resolves when all that is queued now is durable (or the disk has failed); under load something else always is by then. */
  whenWritten(): Promise<void> {
    if (this.isIdle || this.failed) return Promise.resolve();
    return new Promise((resolve) => this.waiters.push({ queued: this.queued, resolve }));
  }

  private push(item: Item): void {
    this.queue.push(item);
    this.queued += 1;
    if (!this.writing) this.writeNext();
  }

  private writeNext(): void {
    const batch = takeBatch(this.queue, this.options.writeBytesMax);
    if (batch.items.length === 0) return;
    if (batch.write === null) {
      this.finish(batch.items);
      this.writeNext();
      return;
    }
    this.writing = true;
    const startMs = this.clock.monotonicMs();
    this.store.write(batch.write).then(
      () => {
        this.writing = false;
        this.events.onSynced((this.clock.monotonicMs() - startMs) / 1000);
        this.finish(batch.items);
        if (!this.writing) this.writeNext();
      },
      (error: unknown) => this.fail(error),
    );
  }

  /** A failed write is never tried again: what the disk holds now is unknown until a new process has read and checked it. */
  private fail(error: unknown): void {
    this.failed = true;
    this.writing = false;
    this.queue.length = 0;
    this.resolveWaiters(Number.POSITIVE_INFINITY);
    this.events.onFailed(error);
  }

  private finish(items: readonly Item[]): void {
    let last: OutputItem | null = null;
    const send: Outbound[] = [];
    for (const item of items) {
      if (item.kind === "ownChunk") this.events.onOwnChunk(item.chunk);
      if (item.kind !== "output") continue;
      last = item;
      send.push(...item.send);
    }
    if (last !== null) this.events.onPersisted(last.number, send);
    this.done += items.length;
    if (this.waiters.length > 0) this.resolveWaiters(this.done);
  }

  private resolveWaiters(done: number): void {
    const waiters = this.waiters;
    this.waiters = waiters.filter(({ queued }) => queued > done);
    for (const { queued, resolve } of waiters) if (queued <= done) resolve();
  }
}

function hasWrite(output: Output): boolean {
  return (
    output.hardState !== null || output.truncateFrom !== null || output.entries.length > 0 || output.chunk !== null
  );
}

/** Takes from the front of the queue what fits one synced batch: at most one snapshot chunk, one removal, `bytesMax` of payload. */
function takeBatch(queue: Item[], bytesMax: number): { items: Item[]; write: StoreWrite | null } {
  let hardState: HardState | null = null;
  let truncateFrom: Index | null = null;
  let entries: Entry[] = [];
  let chunk: StoreWrite["chunk"] = null;
  let removeThrough: Index | null = null;
  let bytes = 0;
  let taken = 0;
  for (const item of queue) {
    if (taken > 0 && bytes >= bytesMax) break;
    if (chunk !== null || removeThrough !== null) break;
    if (item.kind === "ownChunk") {
      chunk = { ...item.chunk, origin: "own" };
    } else if (item.kind === "remove") {
      removeThrough = item.through;
    } else {
      if (item.hardState !== null) hardState = item.hardState;
      if (item.truncateFrom !== null) {
        const from = item.truncateFrom;
        entries = entries.filter((entry) => entry.index < from);
        truncateFrom = truncateFrom === null || from < truncateFrom ? from : truncateFrom;
      }
      for (const entry of item.entries) {
        entries.push(entry);
        bytes += entry.payload.length;
      }
      if (item.chunk !== null) chunk = { ...item.chunk, origin: "received" };
    }
    taken += 1;
  }
  const items = queue.splice(0, taken);
  const isEmpty =
    hardState === null && truncateFrom === null && entries.length === 0 && chunk === null && removeThrough === null;
  return { items, write: isEmpty ? null : { hardState, truncateFrom, entries, chunk, removeThrough } };
}
