/** The production ports on real sockets, timers and processes. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { createServer as createTcpServer } from "node:net";
import type { AddressInfo, Server } from "node:net";
import { createInterface } from "node:readline";
import { after, before, describe, it, test } from "node:test";
import { fileURLToPath } from "node:url";
import { limits } from "@holdfast/wire";
import { connect } from "../src/connect.js";
import { createNodePorts, shareLooks } from "../src/node-ports.js";
import type { Socket } from "../src/ports.js";
import { SocketCluster } from "./world/socket-cluster.js";
import { Stranger } from "./world/stranger.js";

async function until(what: string, condition: () => boolean): Promise<void> {
  const endMs = performance.now() + 10_000;
  while (!condition()) {
    if (performance.now() > endMs) throw new Error(`not within 10 s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

async function listening(server: Server): Promise<string> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** What a socket to `endpoint` comes to. */
function opened(endpoint: string): { events: string[]; socket: Socket } {
  const events: string[] = [];
  const socket = createNodePorts().transport.open(endpoint, {
    onOpened: () => void events.push("opened"),
    onFrame: (frame) => void events.push(`frame ${frame.byteLength}`),
    onPong: () => void events.push("pong"),
    onClosed: (problem) => void events.push(`closed: ${problem}`),
  });
  return { events, socket };
}

describe("a client on real sockets", () => {
  let nodes: SocketCluster;
  before(async () => {
    nodes = await SocketCluster.start();
  });
  after(() => nodes.stop());

  test("acquires, survives its leader, releases, closes", async () => {
    const { cluster } = nodes;
    const holdfast = await connect({ endpoints: cluster.endpoints, ttlMs: 2_000 });
    const lock = await holdfast.acquire("doc:42", { waitMs: 1_000 });
    assert.equal(lock.state, "held");
    const stranger = new Stranger(cluster);
    const held = stranger.acquire("next");
    const waiting = holdfast.acquire("next", { waitMs: 10_000 });
    await until("it waits", () => cluster.machine.waiterCount === 1);
    nodes.kill(0);
    stranger.release(held);
    cluster.elect("n2");
    const next = await waiting;
    assert.equal(next.state, "held");
    assert.equal(lock.state, "held");
    assert.equal(await lock.release(), "released");
    await holdfast.close();
    assert.equal(cluster.machine.lockCount, 0);
    await until("the socket closes", () => nodes.sockets(1).length === 0);
  });

  test("bytes, text and monsters from a node cost the connection, and nothing else", async () => {
    const { cluster } = nodes;
    const holdfast = await connect({ endpoints: cluster.endpoints, ttlMs: 10_000 });
    const lock = await holdfast.acquire("doc:43");
    const attacks: readonly (string | Buffer)[] = [
      Buffer.from([0xc1]),
      "text",
      Buffer.alloc(limits.serverFrameBytesMax + 1),
    ];
    for (const attack of attacks) {
      const [websocket] = nodes.sockets(1);
      assert.ok(websocket !== undefined);
      websocket.send(attack, () => undefined);
      await until("another socket", () => nodes.sockets(1).some((one) => one !== websocket && one.readyState === 1));
      const other = await holdfast.acquire("other", { waitMs: 5_000 });
      assert.equal(await other.release(), "released");
      assert.equal(lock.state, "held");
    }
    await holdfast.close();
  });
});

describe("transport", () => {
  test("a port that refuses, a name that doesn't exist", async () => {
    const server = createTcpServer();
    const endpoint = await listening(server);
    server.close();
    const refused = opened(endpoint);
    const unknown = opened("no-such-host.invalid:7101");
    await until("both close", () => refused.events.length === 1 && unknown.events.length === 1);
    assert.match(refused.events[0] ?? "", /^closed: .*ECONNREFUSED/);
    assert.match(unknown.events[0] ?? "", /^closed: /);
  });

  test("a server that refuses the upgrade", async () => {
    const server = createServer();
    server.on("upgrade", (_, socket) => socket.end("HTTP/1.1 401 Unauthorized\r\n\r\n"));
    const { events } = opened(await listening(server));
    await until("it closes", () => events.length === 1);
    assert.match(events[0] ?? "", /401/);
    server.close();
  });

  test("a server that accepts and says nothing is given up", async () => {
    const server = createTcpServer((socket) => socket.on("error", () => undefined));
    const { events } = opened(await listening(server));
    await until("it closes", () => events.length === 1);
    assert.match(events[0] ?? "", /^closed: .*timed out/);
    server.close();
  });

  test("pings are answered, frames go both ways, and nothing comes after close()", async () => {
    const nodes = await SocketCluster.start();
    const { events, socket } = opened(nodes.cluster.endpoints[0] ?? "");
    socket.send(new Uint8Array([1]));
    socket.ping();
    await until("it opens", () => events.includes("opened"));
    socket.ping();
    await until("a pong", () => events.includes("pong"));
    for (const websocket of nodes.sockets(0)) websocket.send(Buffer.alloc(7));
    await until("a frame", () => events.includes("frame 7"));
    socket.close();
    socket.close();
    socket.send(new Uint8Array([1]));
    socket.ping();
    await until("the node sees it close", () => nodes.sockets(0).length === 0);
    assert.deepEqual(events, ["opened", "pong", "frame 7"]);
    nodes.stop();
  });

  test("a peer that stops reading is cut off before memory is", async () => {
    const nodes = await SocketCluster.start();
    const { events, socket } = opened(nodes.cluster.endpoints[0] ?? "");
    await until("it opens", () => events.includes("opened"));
    for (const websocket of nodes.sockets(0)) websocket.pause();
    const frame = new Uint8Array(limits.clientFrameBytesMax);
    for (let sent = 0; sent < 200 && events.length === 1; sent += 1) {
      socket.send(frame);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await until("it closes", () => events.length === 2);
    assert.equal(events[1], "closed: reads too slowly");
    nodes.stop();
  });
});

describe("looks at a clock", () => {
  it("are shared within a millisecond, and only until anything else may run", async () => {
    let ms = 100;
    let atMs = 0;
    const look = shareLooks(
      () => ms,
      () => atMs,
    );
    assert.equal(look(), 100);
    ms = 5_000;
    atMs = 0.9;
    assert.equal(look(), 100);
    atMs = 1;
    assert.equal(look(), 5_000);
    ms = 6_000;
    await Promise.resolve();
    assert.equal(look(), 6_000);
  });
});

describe("clock", () => {
  test("a timer isn't early, and a delay beyond 2^31 ms isn't now", async () => {
    const { clock } = createNodePorts();
    const beganMs = clock.monotonicMs();
    let long = 0;
    const timer = clock.setTimer(2 ** 31 + 10_000, () => {
      long += 1;
    });
    clock.keepProcess(true);
    await new Promise<void>((resolve) => clock.setTimer(20, resolve));
    assert.ok(clock.monotonicMs() - beganMs >= 20);
    assert.equal(long, 0);
    timer.cancel();
    let cancelled = 0;
    const other = clock.setTimer(1, () => {
      cancelled += 1;
    });
    other.cancel();
    await new Promise<void>((resolve) => clock.setTimer(10, resolve));
    assert.equal(cancelled, 0);
    clock.keepProcess(false);
    clock.keepProcess(true);
    clock.keepProcess(false);
  });

  test("both clocks run at one rate", async () => {
    const { clock } = createNodePorts();
    const [monotonic, suspendAware] = [clock.monotonicMs(), clock.suspendAwareMs()];
    await new Promise((resolve) => setTimeout(resolve, 100));
    const passed = clock.monotonicMs() - monotonic;
    assert.ok(Math.abs(clock.suspendAwareMs() - suspendAware - passed) <= 21, "within the coarser clock's steps");
  });

  test("keys are 32 hex digits, and none comes twice", () => {
    const { random } = createNodePorts();
    const keys = Array.from({ length: 100 }, () => random.key());
    for (const key of keys) assert.match(key, /^[0-9a-f]{32}$/);
    assert.equal(new Set(keys).size, 100);
  });
});

// A 10, A 30: a pending acquire keeps its process, a held lock and an idle socket don't.
describe("the process", () => {
  let nodes: SocketCluster;
  before(async () => {
    nodes = await SocketCluster.start();
  });
  after(() => nodes.stop());

  async function run(scenario: string, onStep: (step: string) => void): Promise<string[]> {
    const child = spawn(
      process.execPath,
      [fileURLToPath(new URL("./world/child.js", import.meta.url)), scenario, nodes.cluster.endpoints.join()],
      { stdio: ["ignore", "pipe", "inherit"] },
    );
    const steps: string[] = [];
    const lines = createInterface(child.stdout);
    lines.on("line", (line) => {
      steps.push(line);
      onStep(line);
    });
    const timer = setTimeout(() => child.kill("SIGKILL"), 20_000);
    await once(child, "close");
    clearTimeout(timer);
    return steps;
  }

  test("a held lock and its renewals don't keep it", async () => {
    assert.deepEqual(await run("holds", () => undefined), ["held", "exit 0"]);
  });

  test("after a close it ends at once", async () => {
    assert.deepEqual(await run("releases", () => undefined), ["released", "closed", "exit 0"]);
  });

  test("a waiting acquire keeps it until it is granted", async () => {
    const stranger = new Stranger(nodes.cluster);
    const held = stranger.acquire("held");
    const onStep = (step: string): void => {
      if (step === "waiting") setTimeout(() => stranger.release(held), 500);
    };
    assert.deepEqual(await run("waits", onStep), ["waiting", "held", "exit 0"]);
  });

  test("looking for a cluster that has gone away doesn't keep it", async () => {
    const onStep = (step: string): void => {
      if (step === "alone") for (const at of [0, 1, 2]) nodes.kill(at);
    };
    assert.deepEqual(await run("lonely", onStep), ["alone", "exit 0"]);
  });
});
