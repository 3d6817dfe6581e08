import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { TestCluster } from "../harness/cluster.js";
import { machineMs } from "../harness/machine-clock.js";
import { until } from "../harness/until.js";
import { WorkerProcess } from "../harness/worker-process.js";

const electionTimeoutMs = 500;
const ttlMs = 3_000;

describe("a holder's death", { timeout: 120_000 }, () => {
  let cluster: TestCluster;
  const workers: WorkerProcess[] = [];

  before(async () => {
    cluster = await TestCluster.start({ timing: { electionTimeoutMs } });
  });
  after(async () => {
    for (const worker of workers) worker.kill();
    await cluster.close();
  });

  function work(name: string): WorkerProcess {
    const worker = new WorkerProcess({ endpoints: cluster.endpoints, name, ttlMs });
    workers.push(worker);
    return worker;
  }

  async function waiters(name: string, count: number): Promise<void> {
    const client = await cluster.connect();
    await until(`${count} wait for ${name}`, async () => (await client.inspect(name))?.waiterCount === count);
    await client.close({ drainMs: 0 });
  }

  it("its lock passes on after TTL from its last acknowledged keepalive, and before 2 x TTL + 3 election timeouts", async () => {
    const holder = work("death");
    const granted = await holder.event("granted");
    const next = work("death");
    await waiters("death", 1);
    holder.signal("SIGKILL");
    const killedAtMs = machineMs();
    const { atMs, token } = await next.event("granted");
    assert.ok(Number(token) > Number(granted.token));
    // The last keepalive that was acknowledged was sent at the grant or later.
    assert.ok(
      atMs - granted.atMs >= ttlMs - (Number(granted.remainingMs) < ttlMs ? ttlMs / 3 : 0),
      `${atMs - granted.atMs} ms after the grant`,
    );
    const bound = 2 * ttlMs + 3 * electionTimeoutMs;
    assert.ok(atMs - killedAtMs <= bound, `${atMs - killedAtMs} ms after the death, ${bound} at most`);
  });

  it("a stopped holder hears of its loss from its own clock before another is granted, and waiters come in order", async () => {
    const holder = work("order");
    await holder.event("granted");
    const first = work("order");
    await waiters("order", 1);
    const dying = work("order");
    await waiters("order", 2);
    const last = work("order");
    await waiters("order", 3);
    // A waiter that dies never blocks and is never granted.
    dying.signal("SIGKILL");
    holder.signal("SIGKILL");
    const one = await first.event("granted");
    await waiters("order", 1);
    first.signal("SIGKILL");
    const two = await last.event("granted");
    assert.ok(Number(two.token) > Number(one.token));
    assert.equal(dying.find("granted"), undefined);
  });

  it("a waiter that cancels never blocks", async () => {
    const client = await cluster.connect();
    const other = await cluster.connect();
    const lock = await client.acquire("cancel");
    const controller = new AbortController();
    const cancelled = other.acquire("cancel", { signal: controller.signal });
    await waiters("cancel", 1);
    const patient = client.acquire("cancel", { waitMs: 30_000 });
    await waiters("cancel", 2);
    controller.abort(new Error("no longer wanted"));
    await assert.rejects(cancelled, /no longer wanted/);
    await waiters("cancel", 1);
    assert.equal(await lock.release(), "released");
    const next = await patient;
    assert.ok(next.token > lock.token);
    await next.release();
  });
});
