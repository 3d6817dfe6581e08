/** A virtual disk and a real directory that live the same lives. */
import type { Index, Restored } from "@holdfast/raft";
import { StorageError } from "@holdfast/storage";
import type { DataDirectory, Store } from "@holdfast/storage";
import assert from "node:assert/strict";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Rot } from "../src/disk/rot.js";
import { VirtualDisk } from "../src/disk/virtual-disk.js";
import type { DiskImage } from "../src/disk/virtual-disk.js";
import { ScriptedChance, Writer, firstBase, formed, textOf } from "./disk-fixture.js";
import type { Chance, Expected } from "./disk-fixture.js";
import {
  chunksOf,
  copyOf,
  makeFormed,
  mixedMark,
  newestLog,
  rotReal,
  sizeOf,
  slotsOf,
  spoilSlot,
  tear,
  tryOpen,
  wholeCopyOf,
} from "./disk-real.js";
import type { Tear } from "./disk-real.js";

/** One process's life. */
interface Life {
  readonly path: string;
  readonly opened: DataDirectory;
  readonly store: Store;
  readonly virtual: Store;
  /** After each batch since the start; the first is what the start found. Marks and ends of the log alike. */
  readonly states: Expected[];
  readonly marks: Buffer[];
  readonly log: { readonly name: string; readonly ends: number[] };
  /** So many batches were synced before the disk began to lie; null while it is honest. */
  syncedBeforeLies: number | null;
}

interface Saved {
  readonly path: string;
  readonly image: DiskImage;
  readonly state: Expected;
}

const rots: readonly Rot[] = ["flip", "hole", "file", "mark", "markFile", "identity"];
const tears: readonly Tear[] = ["cut", "zeros", "noise"];

export class Twins {
  /** What the present life ended with, for a failure's message. */
  last = "";
  readonly seen = {
    keptByKill: 0,
    keptByPowerLoss: 0,
    droppedByPowerLoss: 0,
    silentLosses: 0,
    foundLosses: 0,
    tornSlots: 0,
    rots: 0,
    oldCopies: 0,
    closings: 0,
  };
  /** Apart, for it takes LevelDB's thread to be slow. */
  droppedByKill = 0;
  private readonly random: Chance;
  private readonly script = new ScriptedChance();
  private readonly timers: (() => void)[] = [];
  private disk: VirtualDisk;
  private writer: Writer;
  private machineBoot = 1;
  /** A directory that nobody has open, and what must be in it. */
  private resting: { readonly path: string; readonly state: Expected } | null = null;
  private saved: Saved | null = null;
  /** Of all snapshots that the directory ever had. */
  private indexes = new Set<Index>();

  constructor(random: Chance) {
    this.random = random;
    this.disk = this.newDisk();
    this.writer = new Writer(random);
  }

  private newDisk(): VirtualDisk {
    const disk = new VirtualDisk(this.script);
    disk.format(firstBase);
    // Made by a process of its own.
    void disk.open(this.clock).store.close();
    return disk;
  }

  private get clock(): { setTimer(delayMs: number, run: () => void): { cancel(): void } } {
    const { timers } = this;
    return { setTimer: (_delayMs, run) => (timers.push(run), { cancel: () => undefined }) };
  }

  private chance(inverse: number): boolean {
    return this.random.integer(inverse) === 0;
  }

  /** Starts, writes, and dies in some way. What is left is found by the next life's start. */
  async live(): Promise<void> {
    const life = await this.start();
    this.writer.restart(life.states[0] ?? formed);
    const writes = this.random.integer(12);
    for (let done = 0; done < writes; done += 1) {
      if (this.chance(9) && life.syncedBeforeLies === null) {
        life.syncedBeforeLies = done;
        this.disk.isLying = true;
      }
      await this.write(life);
    }
    if (this.chance(3)) await this.compareChunks(life);
    await this.finish(life);
    this.script.assertDone();
  }

  private async start(): Promise<Life> {
    if (this.resting === null) {
      this.machineBoot = 1;
      this.disk = this.newDisk();
      this.indexes = new Set();
      this.resting = { path: await makeFormed(), state: formed };
    }
    const { path, state } = this.resting;
    this.disk.isLying = false;
    const found = await tryOpen(path, this.machineBoot);
    const expected = this.openVirtual();
    if (found.kind === "refused" || expected.kind === "refused") {
      const said = (one: typeof found | typeof expected): string => ("error" in one ? one.error.message : one.kind);
      assert.fail(`the real store: ${said(found)}; the model: ${said(expected)}`);
    }
    const { opened, store, restored } = found;
    const chunks = await chunksOf(store);
    assert.equal(textOf(restored, chunks), textOf(state, state.chunks), "the real store finds what was written");
    assert.equal(
      textOf(expected.restored, await chunksOf(expected.store)),
      textOf(restored, chunks),
      "the model finds the same",
    );
    assert.equal(this.disk.boot, opened.identity.boot);
    const name = newestLog(path);
    return {
      path,
      opened,
      store,
      virtual: expected.store,
      states: [state],
      marks: [readFileSync(join(path, "mark"))],
      log: { name, ends: [sizeOf(join(path, name))] },
      syncedBeforeLies: null,
    };
  }

  private openVirtual():
    | { kind: "opened"; store: Store; restored: Restored }
    | { kind: "refused"; error: StorageError } {
    try {
      return { kind: "opened", ...this.disk.open(this.clock) };
    } catch (error) {
      if (error instanceof StorageError) return { kind: "refused", error };
      throw error;
    }
  }

  private runTimers(): void {
    for (const run of this.timers.splice(0)) run();
  }

  private async write(life: Life): Promise<void> {
    const write = this.writer.next();
    const virtual = life.virtual.write(write);
    this.runTimers();
    await virtual;
    await life.store.write(write);
    this.note(life);
  }

  private note({ path, states, marks, log }: Life): void {
    states.push(this.writer.state);
    this.indexes.add(this.writer.state.base.position.index);
    marks.push(readFileSync(join(path, "mark")));
    log.ends.push(sizeOf(join(path, log.name)));
  }

  /** Of snapshots of all indexes, gone ones too. */
  private async compareChunks({ store, virtual }: Life): Promise<void> {
    assert.deepEqual(virtual.snapshot, store.snapshot);
    for (const index of this.indexes) {
      for (let chunk = 0; chunk < 4; chunk += 1) {
        const [real, model] = [await store.readChunk(index, chunk), await virtual.readChunk(index, chunk)];
        assert.deepEqual(model, real === null ? null : Uint8Array.from(real), `chunk ${chunk} of ${index}`);
      }
    }
  }

  private async finish(life: Life): Promise<void> {
    const { syncedBeforeLies, path, states } = life;
    const draw = this.random.integer(8);
    let next: { readonly path: string; readonly state: Expected } | null;
    if (syncedBeforeLies !== null) next = await this.losePower(life, syncedBeforeLies);
    else if (draw < 2) next = await this.killInFlight(life);
    else if (draw < 4) next = await this.losePowerInFlight(life);
    else if (draw === 4) next = await this.losePower(life, states.length - 1);
    else if (draw === 5) next = await this.rotAway(life);
    else if (draw === 6) next = await this.putBackOldCopy(life);
    else next = await this.closeInOrder(life);
    if (next?.path !== path) {
      await life.opened.close();
      rmSync(path, { recursive: true });
    }
    this.resting = next;
  }

  private async closeInOrder({ path, opened, virtual, states }: Life): Promise<{ path: string; state: Expected }> {
    this.last = "a closing in order";
    this.seen.closings += 1;
    await virtual.close();
    await opened.close();
    return { path, state: states.at(-1) ?? formed };
  }

  private beginWrite(life: Life): Promise<void> {
    const write = this.writer.next();
    void life.virtual.write(write);
    this.timers.length = 0;
    const written = life.store.write(write);
    // A cut reads the disk first.
    if (write.truncateFrom === null) assert.deepEqual(life.virtual.snapshot, life.store.snapshot);
    return written;
  }

  private async killInFlight(life: Life): Promise<{ path: string; state: Expected }> {
    this.last = "a kill with a write in flight";
    const before = this.writer.state;
    const written = this.beginWrite(life);
    // Whatever LevelDB's thread has done by then; or all of it, and only the caller was never told.
    const turns = this.random.integer(5);
    if (turns === 4) await written;
    else for (let turn = 0; turn < turns; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    const path = copyOf(life.path);
    await written;
    this.note(life);
    const isKept = sizeOf(join(path, life.log.name)) >= (life.log.ends.at(-1) ?? 0);
    const stage = this.random.integer(3);
    this.script.expect(...(isKept ? [1, stage] : [0]));
    if (isKept) this.seen.keptByKill += 1;
    else this.droppedByKill += 1;
    assert.equal(this.disk.kill(), isKept ? "kept" : "dropped");
    return { path, state: isKept ? this.writer.state : before };
  }

  private async losePowerInFlight(life: Life): Promise<{ path: string; state: Expected } | null> {
    const written = this.beginWrite(life);
    await written;
    this.note(life);
    const batches = life.states.length - 1;
    const torn = await this.tearLog(life, this.chance(3) ? batches : batches - 1);
    this.last = `a power loss with a write in flight: ${torn.kept} of ${batches} batches`;
    // The mark of the write is only written when the batch is whole on the disk.
    const isKept = torn.kept === batches;
    const mark = await this.tearMark(life, torn.path, isKept ? batches : batches - 1);
    this.seen[isKept ? "keptByPowerLoss" : "droppedByPowerLoss"] += 1;
    // How far the write had come (0 nothing whole, 1 in the log, 3 marked), what survives of the cache, and how far the mark falls back.
    const stage = mark === batches ? 3 : isKept || this.chance(2) ? 1 : 0;
    const draws = stage === 0 ? [0] : [1, stage - 1];
    draws.push(stage === 1 && isKept ? 1 : 0);
    const behind = stage === 3 ? batches : batches - 1;
    if (behind > 0) draws.push(2, behind - mark);
    this.script.expect(...draws);
    return await this.loseVirtualPower(life, torn.path, torn.kept, mark);
  }

  /** At rest. Of the batches behind the first `synced` any number may be lost. */
  private async losePower(life: Life, synced: number): Promise<{ path: string; state: Expected } | null> {
    const batches = life.states.length - 1;
    const torn = await this.tearLog(life, synced);
    const mark = await this.tearMark(life, torn.path, batches);
    this.last = `a power loss: ${torn.kept} of ${batches} batches, ${synced} of them synced, and mark ${mark}`;
    const draws = [torn.kept - synced];
    if (batches > 0) draws.push(2, batches - mark);
    this.script.expect(...draws);
    return await this.loseVirtualPower(life, torn.path, torn.kept, mark);
  }

  private async loseVirtualPower(
    { states }: Life,
    path: string,
    kept: number,
    mark: number,
  ): Promise<{ path: string; state: Expected } | null> {
    this.machineBoot += 1;
    this.disk.powerLoss();
    if (kept < mark) {
      this.seen.foundLosses += 1;
      await this.expectRefusals(path, /it ends with batch (\d+), and batch (\d+) was finished/);
      return null;
    }
    if (kept < states.length - 2) this.seen.silentLosses += 1;
    return { path, state: states[kept] ?? formed };
  }

  /** Copies the directory and tears its log somewhere behind the first `synced` batches. Returns how many are whole. */
  private async tearLog({ path, log }: Life, synced: number): Promise<{ path: string; kept: number }> {
    const copy = copyOf(path);
    const from = log.ends[synced] ?? 0;
    const size = log.ends.at(-1) ?? 0;
    // Often at a record's end, or all of it is there.
    const ends = log.ends.slice(synced);
    const at = this.chance(2)
      ? (ends[this.random.integer(ends.length)] ?? size)
      : from + this.random.integer(size - from + 1);
    const how = tears[this.random.integer(tears.length)] ?? "cut";
    const whole = await tear(join(copy, log.name), at, how, log.ends, this.random);
    return { path: copy, kept: whole - 1 };
  }

  /** The mark as it was after some batch up to `last`, each slot by itself; one may be torn. Returns the batch that it names. */
  private async tearMark(life: Life, path: string, last: number): Promise<number> {
    // The kernel writes out both pages together, or each when it likes.
    const [newest, other] = [this.drawMark(life, last), this.drawMark(life, last)];
    const bytes = this.chance(2) ? mixedMark(newest, other) : Buffer.from(newest);
    const slots = [...slotsOf(bytes)];
    if (this.chance(4)) {
      const slot = this.random.integer(2);
      spoilSlot(bytes, slot, this.random);
      slots.splice(slot, 1);
      this.disk.rot("mark");
      this.seen.tornSlots += 1;
    }
    writeFileSync(join(path, "mark"), bytes);
    const atStart = Math.max(...slotsOf(life.marks[0] ?? bytes));
    // A slot from before the start's own batches asks for less than they do: as good as their own.
    return Math.max(0, Math.max(...slots) - atStart);
  }

  private drawMark({ marks }: Life, last: number): Buffer {
    return marks[this.chance(2) ? last : this.random.integer(last + 1)] ?? assert.fail();
  }

  private async rotAway(life: Life): Promise<{ path: string; state: Expected } | null> {
    const kind = rots[this.random.integer(rots.length)] ?? "flip";
    this.last = `rot: ${kind}`;
    const path = copyOf(life.path);
    this.disk.kill();
    const state = life.states.at(-1) ?? formed;
    if (!(await rotReal(path, kind, life.log, this.random))) return { path, state };
    if ((kind === "flip" || kind === "file") && (await this.isUnharmed(path, state))) return null;
    this.seen.rots += 1;
    this.disk.rot(kind);
    await this.expectRefusals(path, /is damaged/);
    return null;
  }

  /** A table that a compaction has replaced, or hasn't finished, is still there for a moment: what goes bad in that is of no account. */
  private async isUnharmed(path: string, state: Expected): Promise<boolean> {
    const found = await tryOpen(wholeCopyOf(path), this.machineBoot);
    if (found.kind === "refused") return false;
    assert.equal(textOf(found.restored, await chunksOf(found.store)), textOf(state, state.chunks), "rot is found");
    await found.opened.close();
    return true;
  }

  /** Damage at this start, quarantine at the next. */
  private async expectRefusals(path: string, reason: RegExp): Promise<void> {
    for (const code of ["damaged", "quarantined"] as const) {
      const [real, model] = [await tryOpen(path, this.machineBoot), this.openVirtual()];
      if (real.kind === "opened" || model.kind === "opened") {
        if (real.kind === "opened") await real.opened.close();
        assert.fail(`both refuse: the real one was ${real.kind}, the model ${model.kind}`);
      }
      assert.equal(real.error.code, code);
      assert.equal(model.error.code, code);
      const [realMatch, modelMatch] = [reason.exec(real.error.message), reason.exec(model.error.message)];
      assert(realMatch !== null && modelMatch !== null, `${real.error.message}\n${model.error.message}`);
      // The real one counts the batches of its cleaning too.
      assert.equal(Number(realMatch[2]) - Number(realMatch[1]), Number(modelMatch[2]) - Number(modelMatch[1]));
    }
    rmSync(path, { recursive: true });
  }

  private async putBackOldCopy(life: Life): Promise<{ path: string; state: Expected }> {
    const path = copyOf(life.path);
    this.disk.kill();
    const state = life.states.at(-1) ?? formed;
    const { saved } = this;
    this.saved = { path: wholeCopyOf(path), image: this.disk.copy(), state };
    this.last = saved === null ? "a kill" : "an old copy put back";
    if (saved === null) return { path, state };
    this.seen.oldCopies += 1;
    rmSync(path, { recursive: true });
    this.disk.restore(saved.image);
    return { path: saved.path, state: saved.state };
  }
}
