import assert from "node:assert/strict";
import { cpSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { exitCodes } from "@holdfast/server";
import type { Holdfast } from "@holdfast/client";
import { statusOf, TestCluster } from "../harness/cluster.js";
import type { TestNode } from "../harness/cluster.js";
import { assertInRefusals } from "../harness/operations-page.js";
import { until } from "../harness/until.js";

function filesBelow(directory: string): string[] {
  return readdirSync(directory, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

/** LevelDB's newest log of the node's database (the lock's own database, if there is one, holds nothing). */
function newestLog(directory: string): string {
  const logs = filesBelow(directory).filter((file) => /\d{6}\.log$/.test(file));
  const biggest = logs.sort((a, b) => statSync(b).size - statSync(a).size)[0];
  assert.ok(biggest, "there is a log file");
  return biggest;
}

/** The batch numbers in the two slots of the `mark` file: both are the last start's until a batch of this run is finished. */
function markedBatches(directory: string): bigint[] {
  const mark = readFileSync(join(directory, "mark"));
  return [0, 4_096].map((slot) => mark.readBigUInt64BE(slot + 8));
}

function flipByte(file: string, at: number): void {
  const bytes = readFileSync(file);
  bytes[at] = (bytes[at] as number) ^ 0x40;
  writeFileSync(file, bytes);
}

describe("one node's directory is damaged", { timeout: 240_000 }, () => {
  let cluster: TestCluster;
  let client: Holdfast;
  let victim: TestNode;
  let intact: string;

  before(async () => {
    cluster = await TestCluster.start();
    client = await cluster.connect();
    await work(40);
    const leader = await cluster.leader();
    victim = cluster.others(leader)[0] as TestNode;
    intact = `${victim.directory}.intact`;
  });
  after(async () => cluster.close());

  async function work(count: number): Promise<void> {
    for (let at = 0; at < count; at += 1) await (await client.acquire(`work:${at % 7}`)).release();
  }

  /** A follower applies what it hasn't persisted yet: that it has caught up doesn't say that it has finished a batch. */
  async function aFinishedBatch(): Promise<void> {
    await until("a finished batch", () => {
      const [one, other] = markedBatches(victim.directory);
      return one !== other;
    });
  }

  /** Stops the victim in mid-flight and keeps a copy of its directory. */
  async function stopAndCopy(): Promise<void> {
    await aFinishedBatch();
    await victim.kill();
    rmSync(intact, { recursive: true, force: true });
    cpSync(victim.directory, intact, { recursive: true });
  }

  function putBack(): void {
    rmSync(victim.directory, { recursive: true, force: true });
    cpSync(intact, victim.directory, { recursive: true });
  }

  /** Three starts, three refusals, each with a sentence; meanwhile the others go on. */
  async function refusedThreeTimes(code: number, sentence: RegExp): Promise<void> {
    for (let start = 1; start <= 3; start += 1) {
      const from = victim.log().length;
      victim.start();
      const found = await victim.exited().catch((error: Error) => error.message);
      assert.equal(found, code, `start ${start}: ${victim.log().slice(from)}`);
      assert.match(victim.log().slice(from), sentence, `start ${start}`);
      assertInRefusals(victim.log().slice(from), code);
      await work(1);
    }
  }

  async function startsAndCatchesUp(): Promise<void> {
    victim.start();
    await work(3);
    await until("the node has caught up", async () => {
      const all = await client.status();
      const states = all
        .map((one) => ("status" in one ? one.status : null))
        .filter((state) => state !== null && state !== undefined);
      const newest = Math.max(...states.map((state) => state.commitIndex));
      return states.length === 3 && states.every((state) => state.lastApplied >= newest);
    });
  }

  const damage: [string, () => void][] = [
    [
      "a flipped byte in the log",
      () => flipByte(newestLog(victim.directory), Math.floor(statSync(newestLog(victim.directory)).size / 2)),
    ],
    [
      "the log cut below its mark",
      // Nothing is left but the head of a record: whatever the kill interrupted, a finished batch is gone.
      () => truncateSync(newestLog(victim.directory), 10),
    ],
    ["the log deleted", () => rmSync(newestLog(victim.directory))],
    [
      "CURRENT removed",
      () => {
        const database = join(newestLog(victim.directory), "..");
        rmSync(join(database, "CURRENT"));
      },
    ],
  ];

  for (const [what, inflict] of damage) {
    it(`${what}: refuses to start and says why, at the second and third start too`, async () => {
      await stopAndCopy();
      inflict();
      await refusedThreeTimes(exitCodes.storage.code, /quarantin|damage/i);
      putBack();
      await startsAndCatchesUp();
    });
  }

  it("a kill in mid-write leaves a log cut short at its very end: it starts", async () => {
    await victim.kill();
    const log = newestLog(victim.directory);
    // What LevelDB leaves when it dies in the middle of a record that was never acknowledged.
    writeFileSync(log, Buffer.concat([readFileSync(log), Buffer.from([1, 2, 3, 4, 200])]));
    await startsAndCatchesUp();
  });

  it("kill -9 in the middle of its writes, ten times: it starts each time", async () => {
    for (let round = 0; round < 10; round += 1) {
      const working = work(10);
      await aFinishedBatch();
      await victim.kill();
      await working;
      victim.start();
      await until("it listens", () => statusOf(victim));
    }
    await victim.kill();
    await startsAndCatchesUp();
  });

  it("yesterday's copy: refused, for it has promised more since", async () => {
    await stopAndCopy();
    await startsAndCatchesUp();
    await work(20);
    await victim.kill();
    putBack();
    await refusedThreeTimes(exitCodes.oldCopy.code, /old copy|promised/i);
  });

  it("a wiped directory with a known id: refused", async () => {
    await victim.kill();
    rmSync(victim.directory, { recursive: true, force: true });
    await refusedThreeTimes(exitCodes.wrongInstance.code, /wiped|instance/i);
  });
});
