/** Each fault of the virtual disk by itself, and what must hold under all of them together. */
import type { StoreWrite } from "@holdfast/storage";
import fc from "fast-check";
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Rot } from "../src/disk/rot.js";
import { VirtualDisk } from "../src/disk/virtual-disk.js";
import { Random } from "../src/random.js";
import { Bench, ManualClock, at, bytes, drawing, indexes, isIo, log, refusalOf, told } from "./disk-bench.js";
import { Writer, baseOf, firstBase, formed, nothing, termOf, textOf } from "./disk-fixture.js";
import type { Expected } from "./disk-fixture.js";

describe("a write that fails", () => {
  for (const [draw, name] of [
    [0, "dropped"],
    [1, "kept"],
  ] as const) {
    test(`rejects, all later ones too, and its batch may be ${name}`, async () => {
      const bench = new Bench(drawing(draw));
      bench.disk.failNextWrite();
      await assert.rejects(bench.write({ entries: log }), isIo);
      await assert.rejects(bench.write({ hardState: termOf(1) }), isIo);
      await assert.rejects(bench.store.readChunk(at(1).index, 0), isIo);
      assert.equal(bench.disk.durable().last.index, 0, "it is not sure");
      assert.equal(bench.disk.counts.failedWrites.io[name], 1);
      bench.disk.kill();
      assert.deepEqual(indexes(bench.reopen().entries), draw === 0 ? [] : [1, 2, 3, 4]);
      assert.equal(bench.disk.durable().last.index, draw === 0 ? 0 : 4, "a start makes it durable");
      await bench.write({ hardState: termOf(1) });
    });
  }

  test("a full disk refuses writes and starts until there is room", async () => {
    const bench = new Bench();
    bench.disk.isFull = true;
    await assert.rejects(bench.write({ entries: log }), isIo);
    bench.disk.kill();
    assert.equal(
      refusalOf(() => bench.reopen()),
      "io",
    );
    assert.equal(bench.disk.boot, 1);
    bench.disk.isFull = false;
    bench.reopen();
    assert.equal(bench.disk.boot, 2);
  });

  test("a failed read ends the store, a failed opening only itself", async () => {
    const bench = new Bench();
    bench.disk.failNextRead();
    await assert.rejects(bench.store.readChunk(at(1).index, 0), isIo);
    await assert.rejects(bench.write({ entries: log }), isIo);
    bench.disk.kill();
    bench.disk.failNextOpen();
    assert.equal(
      refusalOf(() => bench.reopen()),
      "io",
    );
    bench.reopen();
  });
});

describe("a disk that stalls", () => {
  test("returns no write until the stall ends", async () => {
    const bench = new Bench();
    const { state } = bench.begin({ entries: log });
    bench.disk.isStalled = true;
    bench.clock.run();
    await told();
    assert.deepEqual([state(), bench.clock.delays, bench.disk.counts.stalledWrites], ["pending", [], 1]);
    bench.disk.syncMs = () => 3;
    bench.disk.isStalled = false;
    assert.deepEqual(bench.clock.delays, [3]);
    bench.clock.run();
    await told();
    assert.equal(state(), "done");
  });

  test("forgets the write of a process that died meanwhile", async () => {
    const bench = new Bench();
    bench.begin({ entries: log });
    bench.disk.isStalled = true;
    bench.clock.run();
    assert.equal(bench.disk.kill(), "dropped");
    bench.reopen();
    bench.disk.isStalled = false;
    assert.deepEqual(bench.clock.delays, []);
    await bench.write({ entries: log });
  });
});

describe("a kill", () => {
  test("leaves what was written, and takes nothing when nothing is in flight", async () => {
    const bench = new Bench();
    await bench.write({ entries: log });
    assert.equal(bench.disk.kill(), "nothing");
    assert.equal(bench.disk.kill(), "nothing");
    assert.deepEqual(indexes(bench.reopen().entries), [1, 2, 3, 4]);
  });

  for (const [draws, outcome, found] of [
    [[0], "dropped", []],
    [[1, 0], "kept", [1, 2, 3, 4]],
    [[1, 2], "kept", [1, 2, 3, 4]],
  ] as const) {
    test(`finds the write in flight ${outcome} (${String(draws)}), and the dead store is silent`, async () => {
      const bench = new Bench(drawing(...draws));
      const { state } = bench.begin({ entries: log });
      const dead = bench.store;
      assert.equal(bench.disk.kill(), outcome);
      assert.deepEqual(indexes(bench.reopen().entries), found);
      bench.clock.run();
      let isSettled = false;
      for (const promise of [dead.write({ ...nothing, entries: log }), dead.close(), dead.readChunk(at(1).index, 0)])
        promise.then(
          () => (isSettled = true),
          () => (isSettled = true),
        );
      await told();
      assert.deepEqual([state(), isSettled, bench.disk.isOpen], ["pending", false, true]);
      assert.deepEqual(indexes(bench.reopenAfterKill().entries), found);
    });
  }

  test("leaves a write in the cache only, which a power loss takes before the next start", () => {
    const bench = new Bench(drawing(1, 0, 0));
    bench.begin({ entries: log });
    assert.equal(bench.disk.kill(), "kept");
    assert.equal(bench.disk.visible().last.index, 4);
    assert.equal(bench.disk.durable().last.index, 0);
    assert.deepEqual(bench.disk.powerLoss(), { lost: 0 });
    assert.equal(bench.disk.counts.lostUnpromised, 1);
    assert.deepEqual(indexes(bench.reopen().entries), []);
  });
});

describe("a power loss", () => {
  test("takes nothing that was synced", async () => {
    const bench = new Bench(drawing(0, 1));
    await bench.write({ entries: log });
    assert.deepEqual(bench.disk.powerLoss(), { lost: 0 });
    assert.equal(bench.disk.counts.marksFallenBack, 1);
    assert.deepEqual(indexes(bench.reopen().entries), [1, 2, 3, 4]);
  });

  test("takes nothing before formation", () => {
    const disk = new VirtualDisk(drawing());
    assert.deepEqual([disk.kill(), disk.powerLoss()], ["nothing", { lost: 0 }]);
    disk.format(firstBase);
    assert.equal(disk.open(new ManualClock()).restored.base, firstBase);
  });

  /** Two synced writes, then two that are only in the cache. */
  async function liedTo(...draws: readonly number[]): Promise<Bench> {
    const bench = new Bench(drawing(...draws));
    await bench.write({ hardState: termOf(1) });
    await bench.write({ entries: log.slice(0, 1) });
    bench.disk.isLying = true;
    await bench.write({ entries: log.slice(1, 2) });
    await bench.write({ entries: log.slice(2, 3) });
    assert.deepEqual([bench.disk.durable().last.index, bench.disk.visible().last.index], [1, 3]);
    return bench;
  }

  test("takes from a lying disk what it had promised; the mark gives it away", async () => {
    const bench = await liedTo(1, 0);
    assert.deepEqual(bench.disk.powerLoss(), { lost: 1 });
    assert.equal(
      refusalOf(() => bench.reopen()),
      "damaged",
    );
    assert.equal(
      refusalOf(() => bench.reopen()),
      "quarantined",
    );
    assert.equal(bench.disk.boot, 1);
    assert.deepEqual(bench.disk.counts.refusedOpens, { locked: 0, io: 0, quarantined: 1, damaged: 1 });
  });

  test("and if the mark fell back too, the loss is silent", async () => {
    const bench = await liedTo(0, 1);
    assert.deepEqual(bench.disk.powerLoss(), { lost: 2 });
    assert.deepEqual(indexes(bench.reopen().entries), [1]);
    assert.equal(bench.disk.counts.silentLosses, 1);
    assert.equal(bench.disk.counts.lostBatches, 2);
    await bench.write({ entries: log.slice(1) });
  });

  test("the mark falls back to between what was lost and what was not", async () => {
    const bench = await liedTo(1, 2, 1);
    bench.disk.powerLoss();
    assert.deepEqual(indexes(bench.reopen().entries), [1, 2], "batch 4 of 5 is there, and 4 is the mark");
  });

  test("nothing is lost once a sync was real again, or a start has copied it", async () => {
    for (const settle of [
      async (bench: Bench) => await bench.write({ hardState: termOf(2) }),
      async (bench: Bench) => void bench.reopenAfterKill(),
    ]) {
      const bench = await liedTo();
      bench.disk.isLying = false;
      await settle(bench);
      assert.equal(bench.disk.durable().last.index, 3);
      assert.deepEqual(bench.disk.powerLoss(), { lost: 0 });
      assert.deepEqual(indexes(bench.reopen().entries), [1, 2, 3]);
    }
  });

  test("a start on a lying disk is only in the cache as well", async () => {
    const bench = await liedTo(0, 1, 1);
    bench.reopenAfterKill();
    assert.deepEqual([bench.disk.boot, bench.disk.durable().last.index], [2, 1]);
    bench.disk.powerLoss();
    assert.equal(bench.disk.boot, 1);
  });

  test("the mark is synced with every new log of LevelDB", async () => {
    const bench = new Bench(drawing(0, 1));
    bench.disk.isLying = true;
    await bench.write({ entries: log.slice(0, 1) });
    bench.disk.isLying = false;
    for (let chunk = 0; chunk < 5; chunk += 1) {
      const base = baseOf(9, 0, 5);
      await bench.write({ chunk: { base, chunk, bytes: new Uint8Array(1_000_000), done: false, origin: "received" } });
    }
    bench.disk.powerLoss();
    assert.equal(bench.disk.counts.marksFallenBack, 0);
  });
});

describe("rot", () => {
  for (const kind of ["flip", "hole", "file", "chunk", "mark", "markFile", "identity"] satisfies Rot[]) {
    test(`${kind}: is found at the next start, and the directory is refused for ever`, async () => {
      const bench = new Bench();
      await bench.write({ entries: log });
      bench.disk.rot(kind);
      await bench.write({ hardState: termOf(1) });
      bench.disk.kill();
      assert.equal(
        refusalOf(() => bench.reopen()),
        "damaged",
      );
      assert(bench.disk.isQuarantined);
      assert.equal(
        refusalOf(() => bench.reopen()),
        "quarantined",
      );
      assert.deepEqual([bench.disk.boot, bench.disk.counts.rots[kind]], [1, 1]);
    });
  }

  test("of one slot of the mark is no damage after a power loss", () => {
    const bench = new Bench();
    bench.disk.rot("mark");
    bench.disk.powerLoss();
    bench.reopen();
    bench.reopenAfterKill();
  });

  test("of a snapshot is found by a read as well", async () => {
    const bench = new Bench();
    await bench.write({ entries: log });
    await bench.writeSnapshot(at(2), [bytes(1)]);
    bench.disk.rot("chunk");
    await assert.rejects(bench.store.readChunk(at(2).index, 0), /wrong checksum/);
    await assert.rejects(bench.write({ hardState: termOf(1) }), /wrong checksum/);
    bench.disk.kill();
    assert.equal(
      refusalOf(() => bench.reopen()),
      "quarantined",
    );
  });

  test("quarantine by the node itself lasts, unless the disk is full", () => {
    const bench = new Bench();
    bench.disk.isFull = true;
    bench.disk.quarantine("divergence");
    assert(!bench.disk.isQuarantined);
    bench.disk.isFull = false;
    bench.disk.quarantine("divergence");
    bench.disk.kill();
    assert.equal(
      refusalOf(() => bench.reopen()),
      "quarantined",
    );
  });
});

describe("an old copy", () => {
  test("brings back the old state, boot counter and all, and stays as it was", async () => {
    const bench = new Bench();
    await bench.write({ entries: log.slice(0, 2) });
    const image = bench.disk.copy();
    await bench.write({ entries: log.slice(2), hardState: { ...termOf(2), votedFor: "n1" } });
    bench.reopenAfterKill();
    assert.throws(() => bench.disk.restore(image), /in use/);
    for (let round = 0; round < 2; round += 1) {
      bench.disk.kill();
      bench.disk.restore(image);
      assert.deepEqual([bench.disk.boot, bench.disk.durable().last.index], [1, 2]);
      assert.deepEqual(indexes(bench.reopen().entries), [1, 2]);
      assert.equal(bench.disk.boot, 2);
      await bench.write({ entries: log.slice(2) });
    }
  });
});

test("under any faults a start finds a state that was written, and never less than was sure", async () => {
  const reached = { lies: 0, failures: 0, keptInFlight: 0, damaged: 0 };
  const property = fc.asyncProperty(fc.integer(), fc.integer({ min: 1, max: 25 }), async (seed, deaths) => {
    const random = new Random(seed);
    const disk = new VirtualDisk(random);
    disk.format(firstBase);
    const writer = new Writer(random);
    // By batch number.
    let states: Expected[] = [formed, formed];
    let hasLied = false;
    for (let death = 0; death < deaths; death += 1) {
      const clock = new ManualClock();
      const { store, restored } = disk.open(clock);
      const found = disk.visible().batchNumber;
      const state = states[found] ?? assert.fail(`batch ${found} was never written`);
      const { chunks } = state;
      assert.equal(textOf(restored, chunks), textOf(state, chunks));
      assert.equal(store.snapshot?.chunks, chunks?.length);
      states = states.slice(0, found + 1);
      writer.restart(state);
      for (let writes = random.integer(8); writes > 0; writes -= 1) {
        disk.isLying = random.chance(0.2);
        hasLied ||= disk.isLying;
        if (random.chance(0.04)) disk.failNextWrite();
        const write: StoreWrite = writer.next();
        const written = store.write(write);
        states.push(writer.state);
        if (random.chance(0.1)) break;
        clock.run();
        const isFailed = await written.then(
          () => false,
          () => true,
        );
        if (isFailed) break;
        if (!disk.isLying) assert.equal(disk.durable().batchNumber, states.length - 1);
      }
      const { batchNumber: sure } = disk.durable();
      const hasPower = random.chance(0.5);
      if (hasPower) disk.kill();
      else disk.powerLoss();
      assert(disk.visible().batchNumber >= sure, "what was sure is there");
      if (disk.visible().batchNumber < states.length - 2) assert(!hasPower, "a kill takes the last batch at most");
      const image = disk.copy();
      const code = refusalOf(() => void disk.open(new ManualClock()));
      disk.kill();
      disk.restore(image);
      if (code === "none") continue;
      assert.equal(code, "damaged");
      const gone = disk.counts.lostBatches + disk.counts.lostUnpromised;
      assert(hasLied && gone > 0, "only a lie is found out");
      reached.damaged += 1;
      break;
    }
    reached.lies += disk.counts.lostBatches;
    reached.failures += disk.counts.failedWrites.io.kept + disk.counts.failedWrites.io.dropped;
    reached.keptInFlight += disk.counts.killsInFlight.kept;
  });
  await fc.assert(property, { numRuns: 200 });
  for (const [what, count] of Object.entries(reached)) assert(count > 0, what);
});
