/** The client in a real browser, against a real cluster. What runs in the page stands in evaluate(); this process is another client. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type * as Client from "@holdfast/client";
import type { Holdfast, Lock } from "@holdfast/client";
import { TestCluster } from "../harness/cluster.js";
import { until } from "../harness/until.js";
import { launchChromium, openPage, servePage, skipWithoutChromium } from "./browser-page.js";
import type { Page, PageServer } from "./browser-page.js";

const skip = skipWithoutChromium();
const ttlMs = 3_000;

/** What a page keeps between two looks at it. */
interface PageGlobals {
  client: typeof Client;
  holdfast: Holdfast;
  lock: Lock;
  pending: Promise<unknown>;
  seen: string[];
}

declare const window: PageGlobals;

describe("in Chromium", { skip }, () => {
  let server: PageServer;
  let cluster: TestCluster;
  let browser: Awaited<ReturnType<typeof launchChromium>>;
  let page: Page;
  let other: Holdfast;

  before(async () => {
    server = await servePage();
    cluster = await TestCluster.start({ origins: [server.origin] });
    other = await cluster.connect();
    browser = await launchChromium();
    page = await openPage(browser, server.origin);
  });

  after(async () => {
    await browser?.close();
    await cluster?.close();
    server?.close();
  });

  async function connectIn(target: Page): Promise<void> {
    await target.evaluate(
      async (given) => {
        window.holdfast = await window.client.connect({ ...given, connectTimeoutMs: 30_000 });
      },
      { endpoints: cluster.endpoints, ttlMs },
    );
  }

  test("it acquires, is seen as the page's, and gives back", async () => {
    await connectIn(page);
    const token = await page.evaluate(async () => {
      window.lock = await window.holdfast.acquire("doc:42");
      return window.lock.token;
    }, null);
    const seen = await other.inspect("doc:42");
    assert.equal(seen?.holders[0]?.token, token);
    assert.equal(seen?.holders[0]?.info, `browser:${new URL(server.origin).host}`);
    assert.equal(await page.evaluate(() => window.lock.release(), null), "released");
    assert.equal(await other.inspect("doc:42"), null);
  });

  test("it waits in the queue until it is its turn", async () => {
    const held = await other.acquire("queue");
    await page.evaluate(() => {
      window.pending = window.holdfast.acquire("queue", { waitMs: 60_000 }).then((lock) => lock.token);
    }, null);
    await until("it waits", async () => (await other.inspect("queue"))?.waiterCount === 1);
    await held.release();
    const token = await page.evaluate(() => window.pending, null);
    assert.ok(Number(token) > held.token);
  });

  test("its lock is lost by a forced release, at once and with the reason", async () => {
    const token = await page.evaluate(async () => {
      const lock = await window.holdfast.acquire("forced");
      window.pending = new Promise((resolve) => {
        lock.signal.addEventListener("abort", () => resolve([lock.state, lock.signal.reason.reason]));
      });
      return lock.token;
    }, null);
    await other.forceRelease("forced", token);
    assert.deepEqual(await page.evaluate(() => window.pending, null), ["lost", "forced"]);
  });

  test("it watches", async () => {
    await page.evaluate(() => {
      window.seen = [];
      window.pending = (async () => {
        for await (const change of window.holdfast.watch("job:", { prefix: true })) {
          window.seen.push(change.type === "gap" ? "gap" : `${change.type} ${change.name}`);
          if (change.type === "released") return;
        }
      })();
    }, null);
    await page.waitForFunction(() => window.seen.length === 1);
    await other.request("job:1", () => undefined);
    await page.evaluate(() => window.pending, null);
    assert.deepEqual(await page.evaluate(() => window.seen, null), ["gap", "granted job:1", "released job:1"]);
  });

  test("it counts, and knows that it has no context of calls", async () => {
    const [text, code] = await page.evaluate(() => {
      try {
        window.client.currentFence();
        return ["", "none"];
      } catch (error) {
        return [window.holdfast.metrics(), (error as { code?: string }).code];
      }
    }, null);
    assert.match(text ?? "", /^holdfast_client_losses_total\{reason="forced"\} 1$/m);
    assert.equal(code, "incompatible");
  });

  // A 14: no timer comes while the page is stuck. The first look at the lock after it tells, before anything else runs.
  test("a page that was stuck for longer than its lease says lost, never held", async () => {
    const stuck = await openPage(browser, server.origin);
    await connectIn(stuck);
    const seen = await stuck.evaluate(async (stuckMs) => {
      const lock = await window.holdfast.acquire("stuck");
      const endMs = Date.now() + stuckMs;
      while (Date.now() < endMs);
      return { state: lock.state, reason: lock.lossReason, leftMs: lock.remainingMs(), token: lock.token };
    }, ttlMs);
    const { token, ...rest } = seen;
    assert.deepEqual(rest, { state: "lost", reason: "loop_stall", leftMs: 0 });
    const next = await other.acquire("stuck", { waitMs: 60_000 });
    assert.ok(next.token > token);
    await next.release();
    await stuck.evaluate(() => window.holdfast.close(), null);
  });

  test("it closes: nothing of it is left at the cluster", async () => {
    const before = (await other.sessions()).filter(({ info }) => info.startsWith("browser:"));
    assert.ok(before.length > 0);
    await page.evaluate(() => window.holdfast.close(), null);
    await until("its sessions are gone", async () => {
      const sessions = await other.sessions();
      return sessions.every(({ info }) => !info.startsWith("browser:"));
    });
    assert.equal(await other.inspect("queue"), null);
  });

  test("a page of another origin is refused", async () => {
    const stranger = await servePage();
    try {
      const target = await openPage(browser, stranger.origin);
      const code = await target.evaluate(
        (endpoints) =>
          window.client.connect({ endpoints, connectTimeoutMs: 2_000 }).then(
            () => "connected",
            (error: { code?: string }) => error.code,
          ),
        cluster.endpoints,
      );
      assert.equal(code, "unreachable");
    } finally {
      stranger.close();
    }
  });
});
