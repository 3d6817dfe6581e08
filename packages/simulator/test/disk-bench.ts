/** A virtual disk, the process that has it open, and a log to write. */
import type { Entry } from "@holdfast/raft";
import { StorageError } from "@holdfast/storage";
import type { Store, StoreWrite } from "@holdfast/storage";
import assert from "node:assert/strict";
import { VirtualDisk } from "../src/disk/virtual-disk.js";
import { baseOf, entriesAfter, firstBase, nothing } from "./disk-fixture.js";
import type { Chance } from "./disk-fixture.js";

export class ManualClock {
  private waiting: { readonly delayMs: number; readonly run: () => void }[] = [];

  setTimer(delayMs: number, run: () => void): { cancel(): void } {
    const timer = { delayMs, run };
    this.waiting.push(timer);
    return { cancel: () => void (this.waiting = this.waiting.filter((other) => other !== timer)) };
  }

  get delays(): number[] {
    return this.waiting.map(({ delayMs }) => delayMs);
  }

  run(): void {
    for (const { run } of this.waiting.splice(0)) run();
  }
}

/** Draws what is given, then zeros. */
export function drawing(...draws: readonly number[]): Chance {
  const left = [...draws];
  return { integer: (below) => Math.min(left.shift() ?? 0, below - 1) };
}

export class Bench {
  readonly disk: VirtualDisk;
  readonly clock = new ManualClock();
  store: Store;

  constructor(chance: Chance = drawing()) {
    this.disk = new VirtualDisk(chance);
    this.disk.format(firstBase);
    this.store = this.disk.open(this.clock).store;
  }

  async write(write: Partial<StoreWrite>): Promise<void> {
    const written = this.store.write({ ...nothing, ...write });
    this.clock.run();
    await written;
  }

  /** Never settles, or the test says otherwise. */
  begin(write: Partial<StoreWrite>): { readonly state: () => "pending" | "done" | "failed" } {
    let state: "pending" | "done" | "failed" = "pending";
    this.store.write({ ...nothing, ...write }).then(
      () => (state = "done"),
      () => (state = "failed"),
    );
    return { state: () => state };
  }

  reopen(): ReturnType<VirtualDisk["open"]>["restored"] {
    const { store, restored } = this.disk.open(this.clock);
    this.store = store;
    return restored;
  }

  reopenAfterKill(): ReturnType<VirtualDisk["open"]>["restored"] {
    this.disk.kill();
    return this.reopen();
  }

  async writeSnapshot(entry: Entry, chunks: readonly Uint8Array[], origin: "own" | "received" = "own"): Promise<void> {
    const base = baseOf(entry.index, entry.term, entry.chain);
    for (const [chunk, bytes] of chunks.entries()) {
      await this.write({ chunk: { base, chunk, bytes, done: chunk === chunks.length - 1, origin } });
    }
  }
}

/** Lets everything that is resolved be told. */
export async function told(): Promise<void> {
  for (let round = 0; round < 5; round += 1) await Promise.resolve();
}

export function refusalOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    assert(error instanceof StorageError);
    return error.code;
  }
  return "none";
}

export const isIo = (error: unknown): boolean => error instanceof StorageError && error.code === "io";
export const bytes = (...values: readonly number[]): Uint8Array => Uint8Array.from(values);
export const log: readonly Entry[] = entriesAfter({ index: 0, chain: 0 }, 0, [bytes(1), bytes(2), bytes(3), bytes(4)]);
export const at = (index: number): Entry => log[index - 1] ?? assert.fail();
export const indexes = (entries: readonly Entry[]): number[] => entries.map(({ index }) => index);
