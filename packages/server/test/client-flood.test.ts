/** A client that sends faster than its frames are handled is held back by TCP: it fills its own buffers, not the node's memory. */
import { strict as assert } from "node:assert";
import { afterEach, describe, test } from "node:test";
import { encodeClientFrame } from "@holdfast/wire";
import { Intake } from "../src/intake.js";
import type { ClientConnection } from "../src/ports.js";
import { sleep, until } from "./helpers.js";
import { endAll, hello, join, start } from "./listener-harness.js";
import { VirtualCluster } from "./virtual/virtual-cluster.js";

afterEach(endAll);

const kib = 1_024;

describe("a flood of frames", () => {
  test("is not read while its connection is paused, and is no silence", async () => {
    const { url, opened, closed, messages } = await start({ pingMs: 40 });
    const socket = await join(url);
    socket.send(encodeClientFrame([hello]));
    await until(() => messages.length === 1, "hello");
    const [connection] = opened;
    assert.ok(connection);
    connection.pause();
    const count = 3_000;
    const payload = new Uint8Array(10_000);
    for (let at = 0; at < count; at += 1) socket.send(encodeClientFrame([{ kind: "command", payload }]));
    await sleep(400);
    const read = messages.length;
    assert.ok(read < 100, `${read} frames were read`);
    assert.deepEqual(closed, [], "ten periods without a word");
    connection.resume();
    await until(() => messages.length === count + 1, "all of it");
  });

  test("is read no more once much of it waits, until a turn has handled that", async () => {
    const cluster = new VirtualCluster({ nodes: 1 });
    const leader = await cluster.leader();
    const told: string[] = [];
    const connection = connectionOf(1, told);
    const { gateway } = leader.host ?? assert.fail("no host");
    gateway.onOpened(connection);
    const frame = Array.from({ length: 65 }, () => hello);
    for (let at = 0; at < 3; at += 1) gateway.onFrame(connection, { bytes: 8 * kib, messages: () => frame });
    assert.deepEqual(told, ["1 paused"]);
    await cluster.clock.pass(10);
    assert.deepEqual(told, ["1 paused", "1 resumed"]);
  });
});

describe("intake", () => {
  test("reads those who send little, however many they are", () => {
    const { intake, told, connections } = intakeOf(1_000);
    for (let turn = 0; turn < 3; turn += 1) {
      for (const each of connections) intake.onRead(each, 15 * kib);
      for (const each of connections) intake.onTaken(each, 15 * kib);
      intake.resume();
    }
    assert.deepEqual(told, []);
    assert.equal(intake.hasPaused, false);
  });

  test("reads some of those who send much in each turn, in rotation", () => {
    const { intake, told, connections } = intakeOf(20);
    for (const each of connections) intake.onRead(each, 64 * kib);
    for (const each of connections) intake.onTaken(each, 64 * kib);
    const resumed = connections.map(({ id }) => `${id} resumed`);
    told.length = 0;
    intake.resume();
    assert.deepEqual(told, resumed.slice(0, 16), "as many as may bring 1 MiB");
    assert.equal(intake.hasPaused, true);
    for (const each of connections.slice(0, 16)) intake.onRead(each, 64 * kib);
    for (const each of connections.slice(0, 8)) intake.onTaken(each, 64 * kib);
    told.length = 0;
    intake.resume();
    assert.deepEqual(
      told,
      [...resumed.slice(16), ...resumed.slice(0, 4)],
      "what waits takes room, the longest paused come first",
    );
  });

  test("reads one of them at least, however much waits of those who send little", () => {
    const { intake, told, connections } = intakeOf(102);
    const [first, second, ...others] = connections as [ClientConnection, ClientConnection, ...ClientConnection[]];
    for (const each of [first, second]) {
      intake.onRead(each, 64 * kib);
      intake.onTaken(each, 64 * kib);
    }
    for (const each of others) intake.onRead(each, 15 * kib);
    told.length = 0;
    intake.resume();
    assert.deepEqual(told, ["1 resumed"]);
    intake.resume();
    assert.deepEqual(told, ["1 resumed", "2 resumed"]);
  });

  test("forgets who is gone, and what waited of it", () => {
    const { intake, told, connections } = intakeOf(40);
    for (const each of connections) intake.onRead(each, 64 * kib);
    told.length = 0;
    for (const each of connections.slice(0, 39)) intake.onClosed(each);
    const [last] = connections.slice(39);
    assert.ok(last);
    intake.onTaken(last, 64 * kib);
    intake.resume();
    assert.deepEqual(told, ["40 resumed"]);
    assert.equal(intake.hasPaused, false);
  });
});

function intakeOf(count: number): { intake: Intake; told: string[]; connections: ClientConnection[] } {
  const intake = new Intake();
  const told: string[] = [];
  const connections = Array.from({ length: count }, (_, at) => connectionOf(at + 1, told));
  for (const each of connections) intake.onOpened(each);
  return { intake, told, connections };
}

function connectionOf(id: number, told: string[]): ClientConnection {
  return {
    id,
    remote: "",
    send() {},
    pause: () => told.push(`${id} paused`),
    resume: () => told.push(`${id} resumed`),
    close() {},
  };
}
