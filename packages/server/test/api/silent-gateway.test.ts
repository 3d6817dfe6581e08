/** The HTTP API at a gateway of the test's: one that answers when it is told to, and one that says nothing. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LockApi } from "../../src/api/lock-api.js";
import type { ClientConnection } from "../../src/ports.js";
import { ProcessClock, VirtualClock } from "../virtual/virtual-clock.js";
import { FakeExchange } from "./virtual-http.js";

const acquire = (request: number, waitMs = 30_000): object => ({ request, names: ["a"], waitMs });

describe("views of a session", () => {
  it("are each as new as the question: one that comes while another is being answered has a resume of its own", async () => {
    const api = new LockApi({ clock: new ProcessClock(new VirtualClock()), hasSession: () => true });
    const [resumes, answers]: [ClientConnection[], FakeExchange[]] = [[], []];
    api.open({
      onOpened: () => undefined,
      onClosed: () => undefined,
      onFrame: (connection, frame) => {
        for (const { kind } of frame.messages()) if (kind === "resume") resumes.push(connection);
      },
    });
    const credential = `1.${"0".repeat(32)}`;
    for (let times = 0; times < 3; times += 1) {
      const exchange = new FakeExchange({ credential });
      answers.push(exchange);
      api.viewSession(exchange);
    }
    for (const expected of [
      ["200", "open", "open"],
      ["200", "200", "200"],
    ]) {
      const [connection] = resumes.splice(0);
      connection?.send({ kind: "resumed", session: 1, ttlMs: 1, holds: [], waiting: [], outcomes: [] });
      await Promise.resolve();
      assert.deepEqual(
        answers.map(({ told }) => told),
        expected,
      );
    }
    assert.deepEqual(resumes, []);
  });
});

describe("a gateway that says nothing", () => {
  it("is not waited for without end", async () => {
    const clock = new VirtualClock();
    const api = new LockApi({ clock: new ProcessClock(clock), hasSession: () => false });
    const open = new Set<object>();
    api.open({
      onOpened: (connection) => open.add(connection),
      onFrame: () => undefined,
      onClosed: (connection) => open.delete(connection),
    });
    const credential = `1.${"0".repeat(32)}`;
    const asked = [
      [api.openSession, { body: {} }, "503 unknown_outcome"],
      [api.viewSession, { credential }, "503 no_quorum"],
      [api.renewSession, { credential }, "503 no_quorum"],
      [api.closeSession, { credential }, "503 unknown_outcome"],
      [api.acquire, { credential, body: acquire(1, 0) }, "503 unknown_outcome"],
      [api.release, { credential, body: { request: 2, of: 1 } }, "503 unknown_outcome"],
      [api.cancel, { credential, body: { request: 3, of: 1 } }, "503 unknown_outcome"],
      [api.inspect, { parameter: "a" }, "503 no_quorum"],
      [api.list, {}, "503 no_quorum"],
      [api.watch, { query: "name=a" }, "503 no_quorum"],
    ] as const;
    const exchanges = asked.map(([operation, asking]) => {
      const exchange = new FakeExchange(asking);
      operation.call(api, exchange);
      return exchange;
    });
    const waiting = new FakeExchange({ credential, body: acquire(4, 20_000) });
    api.acquire(waiting);
    await clock.pass(9_900);
    assert.deepEqual([...new Set(exchanges.map(({ told }) => told))], ["open"]);
    await clock.pass(200);
    assert.deepEqual(
      exchanges.map(({ told }) => told),
      asked.map(([, , expected]) => expected),
    );
    await clock.pass(19_800);
    assert.equal(waiting.told, "open");
    await clock.pass(200);
    assert.equal(waiting.told, "503 unknown_outcome");
    api.close();
    assert.equal(open.size, 0);
    const late = new FakeExchange({});
    api.list(late);
    assert.equal(late.told, "503 not_ready");
  });

  it("is left with nothing when the node stops", () => {
    const clock = new VirtualClock();
    const api = new LockApi({ clock: new ProcessClock(clock), hasSession: () => false });
    const open = new Set<object>();
    api.open({
      onOpened: (connection) => open.add(connection),
      onFrame: () => undefined,
      onClosed: (connection) => open.delete(connection),
    });
    const exchanges = [{ query: "name=a" }, { query: "prefix=" }].map((asking) => new FakeExchange(asking));
    for (const exchange of exchanges) api.watch(exchange);
    const waiting = new FakeExchange({ credential: `1.${"0".repeat(32)}`, body: acquire(4) });
    api.acquire(waiting);
    api.close();
    assert.deepEqual(
      [...exchanges, waiting].map(({ told }) => told),
      Array(3).fill("503 not_ready"),
    );
    assert.equal(open.size, 0);
  });
});
