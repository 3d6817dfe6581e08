/**
 * What the client does in a browser, without one: its ports over another WebSocket, connections that can't ping, and the clock that is made
 * of two. test/client/browser.test.ts runs it in Chromium.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer as createTcpServer } from "node:net";
import type { AddressInfo } from "node:net";
import { describe, test } from "node:test";
import fc from "fast-check";
import { WebSocket } from "ws";
import { limits } from "@holdfast/wire";
import { browserPlatform } from "../src/browser-platform.js";
import { createBrowserPorts } from "../src/browser-ports.js";
import type { BrowserWebSocket } from "../src/browser-ports.js";
import * as browser from "../src/browser.js";
import * as node from "../src/index.js";
import type { Socket } from "../src/ports.js";
import { wallBackedMs } from "../src/wall-clock.js";
import { SocketCluster } from "./world/socket-cluster.js";
import { World } from "./world/world.js";

/** In the shape of a browser's. */
function newWebSocket(url: string): BrowserWebSocket {
  const websocket = new WebSocket(url);
  websocket.on("error", () => undefined);
  return websocket as unknown as BrowserWebSocket;
}

async function until(what: string, condition: () => boolean): Promise<void> {
  const endMs = performance.now() + 20_000;
  while (!condition()) {
    if (performance.now() > endMs) throw new Error(`not within 20 s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

function opened(endpoint: string, make = newWebSocket): { events: string[]; socket: Socket } {
  const events: string[] = [];
  const socket = createBrowserPorts(make).transport.open(endpoint, {
    onOpened: () => void events.push("opened"),
    onFrame: (frame) => void events.push(`frame ${frame.byteLength}`),
    onPong: () => void events.push("pong"),
    onClosed: (problem) => void events.push(`closed: ${problem}`),
  });
  return { events, socket };
}

test("the entry for browsers exports what Node's does, but for Node's ports", () => {
  const names = Object.keys(node).filter((name) => name !== "createNodePorts");
  assert.deepEqual(Object.keys(browser).sort(), names.sort());
});

test("currentLock() and currentFence() say that a browser has none, rather than that none is held", async () => {
  const world = new World();
  const holdfast = await world.within(
    1_000,
    browser.connectWith({ endpoints: world.cluster.endpoints }, world.ports()),
  );
  const value = await world.within(
    1_000,
    holdfast.request("a", (lock) => {
      assert.throws(() => browser.currentLock(), { code: "incompatible" });
      assert.throws(() => browser.currentFence(), { code: "incompatible", message: /hand the lock on/ });
      return lock.token;
    }),
  );
  assert.ok(value > 0);
  assert.equal(browserPlatform().info, "browser:");
});

test("connect names its endpoints, for a page has no environment", async () => {
  await assert.rejects(async () => browser.connect(), { code: "invalid_argument", argument: "endpoints" });
});

describe("sockets that can't ping", () => {
  function pinglessWorld(): World {
    const world = new World();
    world.network.hasPings = false;
    return world;
  }

  test("ask for the node's status instead, and nothing else", async () => {
    const world = pinglessWorld();
    await world.connect({ ttlMs: 12_000 });
    await world.clock.advance(1_000);
    const before = world.cluster.received.length;
    await world.clock.advance(60_000);
    const asked = world.cluster.received.slice(before).map(({ message }) => message);
    assert.ok(asked.length >= 25 && asked.length <= 31, `${asked.length} in a minute`);
    for (const message of asked) assert.deepEqual(message, { kind: "query", id: 0, query: { kind: "status" } });
    assert.equal(world.network.pings, 0);
  });

  // B 29: two keepalive periods, also where no ping is possible.
  test("a silent node is left after two periods, while nobody waits", async () => {
    const world = pinglessWorld();
    const holdfast = await world.connect({ ttlMs: 12_000 });
    await world.clock.advance(1_000);
    world.cluster.node("n1").reach = "silent";
    world.cluster.elect("n2", ["n1"]);
    await world.clock.advance(6_500);
    const beganMs = world.clock.monotonicMs();
    await world.within(1_000, holdfast.acquire("a"));
    assert.ok(world.clock.monotonicMs() - beganMs < 20);
  });

  // Its status is no proof that a node leads: taken for one, it would end the look for another each time.
  test("a leader without a majority, which answers them, is left when another claims to lead", async () => {
    const world = pinglessWorld();
    const holdfast = await world.connect({ ttlMs: 6_000 });
    await world.within(100, holdfast.acquire("a"));
    world.network.latencyMs = 250;
    world.cluster.elect("n2", ["n1"]);
    world.cluster.dropAnswer = (message, { id }) => id === "n1" && message.kind !== "answer";
    await world.within(5_000, holdfast.acquire("b"));
    assert.equal(world.cluster.received.at(-1)?.node, "n2");
  });
});

describe("native sockets", () => {
  test("acquire, survive the leader, release, close", async () => {
    const nodes = await SocketCluster.start();
    const { cluster } = nodes;
    const options = { endpoints: cluster.endpoints, ttlMs: 2_000 };
    const holdfast = await browser.connectWith(options, createBrowserPorts(newWebSocket));
    const lock = await holdfast.acquire("doc:42");
    nodes.kill(0);
    cluster.elect("n2");
    const next = await holdfast.acquire("next");
    assert.equal(lock.state, "held");
    assert.equal(await next.release(), "released");
    await holdfast.close();
    assert.equal(cluster.machine.lockCount, 0);
    await until("the socket closes", () => nodes.sockets(1).length === 0);
    nodes.stop();
  });

  test("a port that refuses, what is no URL, and a page that may not", async () => {
    const server = createTcpServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    server.close();
    const refused = opened(`127.0.0.1:${port}`);
    const forbidden = opened("127.0.0.1:1", () => {
      throw new Error("an insecure WebSocket from a page of https");
    });
    forbidden.socket.send(new Uint8Array(1));
    assert.deepEqual(forbidden.events, []);
    await until("both close", () => refused.events.length === 1 && forbidden.events.length === 1);
    assert.match(refused.events[0] ?? "", /^closed: closed with code 1006/);
    assert.match(forbidden.events[0] ?? "", /^closed: can't be opened: an insecure WebSocket/);
    forbidden.socket.close();
  });

  test("a server that accepts and says nothing is given up", async () => {
    const server = createTcpServer((socket) => socket.on("error", () => undefined)).listen(0, "127.0.0.1");
    await once(server, "listening");
    const { events } = opened(`127.0.0.1:${(server.address() as AddressInfo).port}`);
    await until("it closes", () => events.length === 1);
    assert.match(events[0] ?? "", /^closed: no handshake within/);
    server.close();
  });

  test("text and monsters cost the connection; nothing comes after close()", async () => {
    const nodes = await SocketCluster.start();
    const endpoint = nodes.cluster.endpoints[0] ?? "";
    for (const attack of ["text", Buffer.alloc(limits.serverFrameBytesMax + 1)]) {
      const { events } = opened(endpoint);
      await until("it opens", () => events.includes("opened"));
      for (const websocket of nodes.sockets(0)) websocket.send(attack);
      await until("it closes", () => events.length === 2);
      await until("the node sees it close", () => nodes.sockets(0).length === 0);
    }
    const { events, socket } = opened(endpoint);
    socket.send(new Uint8Array([1]));
    await until("it opens", () => events.includes("opened"));
    for (const websocket of nodes.sockets(0)) websocket.send(Buffer.alloc(7));
    await until("a frame", () => events.includes("frame 7"));
    socket.close();
    socket.send(new Uint8Array([1]));
    await until("the node sees it close", () => nodes.sockets(0).length === 0);
    assert.deepEqual(events, ["opened", "frame 7"]);
    nodes.stop();
  });

  test("a peer that stops reading is cut off before memory is, and not in the midst of a send", async () => {
    const nodes = await SocketCluster.start();
    const { events, socket } = opened(nodes.cluster.endpoints[0] ?? "");
    await until("it opens", () => events.includes("opened"));
    for (const websocket of nodes.sockets(0)) websocket.pause();
    const frame = new Uint8Array(limits.clientFrameBytesMax);
    for (let sent = 0; sent < 200 && events.length === 1; sent += 1) {
      socket.send(frame);
      assert.equal(events.length, 1);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await until("it closes", () => events.length === 2);
    assert.equal(events[1], "closed: reads too slowly");
    nodes.stop();
  });
});

// A 43: one of the two stands still, the other jumps.
describe("the clock that is made of the wall's and the monotonic one", () => {
  interface Step {
    readonly runMs: number;
    /** Time that the monotonic clock doesn't see. */
    readonly suspendedMs: number;
    /** By how much somebody sets the wall clock. */
    readonly setMs: number;
  }

  const step: fc.Arbitrary<Step> = fc.record({
    runMs: fc.oneof(fc.double({ min: 0, max: 3, noNaN: true }), fc.nat(1_000)),
    suspendedMs: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, fc.nat(3_600_000)),
    setMs: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, fc.integer({ min: -3_600_000, max: 3_600_000 })),
  });

  /** What the clock says has passed after each step, and what truly has. The wall has whole milliseconds, as Date.now(). */
  function run(steps: readonly Step[]): { saidMs: number; trueMs: number }[] {
    let monotonicMs = 1_000;
    let wallMs = 1_700_000_000_000.5;
    let trueMs = 0;
    const look = wallBackedMs(
      () => Math.floor(wallMs),
      () => monotonicMs,
    );
    const beganMs = look();
    return steps.map(({ runMs, suspendedMs, setMs }) => {
      monotonicMs += runMs;
      wallMs += runMs + suspendedMs;
      trueMs += runMs + suspendedMs;
      const saidMs = look() - beganMs;
      wallMs += setMs;
      look();
      return { saidMs, trueMs };
    });
  }

  test("never falls, and misses no suspend by more than the margin of a lease pays for, however the wall is set", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        let lastMs = 0;
        let shortMs = 0;
        for (const [at, { saidMs, trueMs }] of run(steps).entries()) {
          assert.ok(saidMs >= lastMs, `falls from ${lastMs} to ${saidMs}`);
          lastMs = saidMs;
          // A wall that is set back by less than the slack hides as much of later suspends, until it has caught up.
          shortMs = trueMs - saidMs;
          assert.ok(shortMs <= 52, `step ${at}: ${shortMs} ms are missing`);
        }
      }),
      { numRuns: 500 },
    );
  });

  test("runs at the rate of the monotonic clock when nothing happens, whatever the steps of the wall", () => {
    const steps = Array.from({ length: 20_000 }, () => ({ runMs: 0.13, suspendedMs: 0, setMs: 0 }));
    const last = run(steps).at(-1);
    assert.ok(Math.abs((last?.saidMs ?? 0) - (last?.trueMs ?? 1e9)) <= 1, JSON.stringify(last));
  });
});
