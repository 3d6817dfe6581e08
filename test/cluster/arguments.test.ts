import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Holdfast } from "@holdfast/client";
import { TestCluster } from "../harness/cluster.js";

describe("odd arguments are refused by name", { timeout: 60_000 }, () => {
  let cluster: TestCluster;
  let client: Holdfast;

  before(async () => {
    cluster = await TestCluster.start({ nodes: 1 });
    client = await cluster.connect();
  });
  after(async () => cluster.close());

  async function refused(argument: RegExp, call: () => Promise<unknown>): Promise<void> {
    await assert.rejects(call, (error: { code?: string; argument?: string; retryable?: boolean; message: string }) => {
      assert.equal(error.code, "invalid_argument", error.message);
      assert.equal(error.retryable, false);
      assert.match(String(error.argument), argument);
      return true;
    });
  }

  const oddNumbers: unknown[] = [Number.NaN, -1, 0.5, "5", null, {}];

  it("names", async () => {
    for (const name of [
      "",
      "x".repeat(513),
      "é".repeat(257),
      "\ud800",
      "a\udc00b",
      "a\u0000b",
      7,
      null,
      undefined,
      {},
    ]) {
      await refused(/name/, () => client.acquire(name as string));
    }
    await refused(/name/, () => client.acquire([]));
    await refused(/name/, () => client.acquire(["ok", ""]));
    await refused(/name/, () => client.acquire(Array.from({ length: 10_000_000 }, () => "x")));
    await refused(/name/, () => client.inspect(""));
  });

  it("ttlMs", async () => {
    for (const ttlMs of [0, Number.NaN, -1, 2 ** 31, 1e12, 1_999, Number.POSITIVE_INFINITY, "10s"]) {
      await refused(/ttlMs/, async () => {
        const other = await cluster.connect({ ttlMs: ttlMs as number });
        await other.acquire("odd");
      });
    }
  });

  it("waitMs, lockDelayMs, maxHoldMs and info", async () => {
    // A fraction of a millisecond is no fault in a time to wait.
    for (const odd of oddNumbers.filter((one) => one !== 0.5))
      await refused(/waitMs/, () => client.acquire("odd", { waitMs: odd as number }));
    for (const odd of [...oddNumbers, 60_001, Number.POSITIVE_INFINITY]) {
      await refused(/lockDelayMs/, () => client.acquire("odd", { lockDelayMs: odd as number }));
    }
    for (const odd of [...oddNumbers, 2 ** 53])
      await refused(/maxHoldMs/, () => client.acquire("odd", { maxHoldMs: odd as number }));
    await refused(/info/, () => client.acquire("odd", { info: "x".repeat(100_000) }));
    await refused(/mode/, () => client.acquire("odd", { mode: "greedy" as "shared" }));
  });

  it("and nothing was lost by any of it", async () => {
    assert.equal(await client.inspect("odd"), null);
    const lock = await client.acquire("odd");
    assert.equal(await lock.release(), "released");
  });
});
