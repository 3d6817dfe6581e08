import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Index, LogBase, Term } from "@holdfast/raft";
import { BackupRefusedError, BackupTaking } from "../src/backup-taking.js";
import type { TakenBackup } from "../src/backup-taking.js";

function baseOf(index: number): LogBase {
  const configuration = { voters: [], outgoing: [], learners: [], removed: [] };
  return { position: { term: 1 as Term, index: index as Index }, chain: 0, configuration };
}

/** A node whose lastApplied is set by the test. */
class FakeHost {
  applied = 10;
  readonly begun: LogBase[] = [];
  readonly pins: (number | null)[] = [];
  failure: unknown = null;
  isBroken = false;
  readonly taking: BackupTaking = new BackupTaking({
    begin: () => {
      const base = baseOf(this.applied);
      this.begun.push(base);
      return base;
    },
    closingMs: () => this.applied * 100,
    pin: (index) => void this.pins.push(index),
    read: async (index, chunk) => {
      if (this.isBroken) throw new Error("no disk");
      return { bytes: new Uint8Array([index, chunk]), done: true };
    },
    onFailed: (error) => void (this.failure = error),
  });

  advance(newest: LogBase | null): void {
    const snapshot = newest === null ? null : { base: newest, chunks: 1 };
    this.taking.advance(snapshot, this.applied as Index);
  }
}

async function isRefused(taken: Promise<TakenBackup>, code: string): Promise<void> {
  await assert.rejects(taken, (error) => error instanceof BackupRefusedError && error.code === code);
}

describe("taking a backup", () => {
  it("waits for a snapshot of its own, and has it kept until it is released", async () => {
    const host = new FakeHost();
    host.advance(null);
    assert.deepEqual(host.begun, [], "nobody has asked");
    const taken = host.taking.take();
    host.advance(baseOf(5));
    host.advance(baseOf(5));
    assert.equal(host.begun.length, 1);
    host.taking.noteTaken(baseOf(10));
    assert.deepEqual(host.pins, [], "another snapshot of the same index");
    for (const base of host.begun) host.taking.noteTaken(base);
    assert.deepEqual(host.pins, [10]);
    host.applied = 99;
    const backup = await taken;
    assert.equal(backup.closingMs, 1_000, "of the state that was taken");
    assert.deepEqual(await backup.read(3), { bytes: new Uint8Array([10, 3]), done: true });
    await isRefused(host.taking.take(), "overloaded");
    backup.release();
    assert.deepEqual(host.pins, [10, null]);
    void host.taking.take();
    host.advance(null);
    assert.equal(host.begun.length, 2);
  });

  it("takes the newest one when nothing was applied since, and waits for the first entry of all", async () => {
    const host = new FakeHost();
    const taken = host.taking.take();
    host.advance(baseOf(10));
    assert.equal((await taken).base.position.index, 10);
    assert.deepEqual([host.begun.length, host.pins], [0, [10]]);
    const fresh = new FakeHost();
    fresh.applied = 0;
    void fresh.taking.take();
    fresh.advance(null);
    assert.equal(fresh.begun.length, 0);
    fresh.applied = 1;
    fresh.advance(null);
    assert.equal(fresh.begun.length, 1);
  });

  it("refuses a second one also while the first is being taken", async () => {
    const host = new FakeHost();
    void host.taking.take();
    await isRefused(host.taking.take(), "overloaded");
    host.advance(null);
    await isRefused(host.taking.take(), "overloaded");
  });

  it("begins anew when a leader's snapshot has taken the place of the state", async () => {
    const host = new FakeHost();
    const taken = host.taking.take();
    host.advance(null);
    host.taking.noteAbandoned();
    host.applied = 50;
    host.advance(baseOf(50));
    assert.equal((await taken).base.position.index, 50);
  });

  it("ends the node when the disk fails", async () => {
    const host = new FakeHost();
    const taken = host.taking.take();
    host.advance(baseOf(10));
    host.isBroken = true;
    await assert.rejects((await taken).read(0), /no disk/);
    assert.match(String(host.failure), /no disk/);
  });

  it("is refused by a node that stops", async () => {
    const [wanted, begun] = [new FakeHost(), new FakeHost()];
    const refused = [wanted, begun].map((host) => isRefused(host.taking.take(), "not_ready"));
    begun.advance(null);
    wanted.taking.stop();
    begun.taking.stop();
    await Promise.all(refused);
    await isRefused(begun.taking.take(), "not_ready");
  });
});
