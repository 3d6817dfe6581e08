/** A client that sends faster than its frames are handled is held back by TCP: it fills its own buffers, not the node's memory. */
import { strict as assert } from "node:assert";
import { afterEach, describe, test } from "node:test";
import { encodeClientFrame } from "@holdfast/wire";
import type { ClientConnection } from "../src/ports.js";
import { sleep, until } from "./helpers.js";
import { endAll, hello, join, start } from "./listener-harness.js";
import { VirtualCluster } from "./virtual/virtual-cluster.js";

afterEach(endAll);

describe("a flood of frames", () => {
  test("is not read while too many wait, and is no silence", async () => {
    const { url, opened, closed, messages } = await start({ pingMs: 40 });
    const socket = await join(url);
    socket.send(encodeClientFrame([hello]));
    await until(() => messages.length === 1, "hello");
    const [connection] = opened;
    assert.ok(connection);
    connection.noteWaiting(1_024);
    const count = 3_000;
    const payload = new Uint8Array(10_000);
    for (let at = 0; at < count; at += 1) socket.send(encodeClientFrame([{ kind: "command", payload }]));
    await sleep(400);
    const read = messages.length;
    assert.ok(read < 100, `${read} frames were read`);
    connection.noteWaiting(1_023);
    await sleep(50);
    assert.equal(messages.length, read, "not before there is room");
    assert.deepEqual(closed, [], "ten periods without a word");
    connection.noteWaiting(256);
    await until(() => messages.length === count + 1, "all of it");
  });

  test("is counted by the node, message by message", async () => {
    const cluster = new VirtualCluster({ nodes: 1 });
    const leader = await cluster.leader();
    const counts: number[] = [];
    const connection: ClientConnection = {
      id: 1,
      remote: "",
      send() {},
      noteWaiting: (waiting) => counts.push(waiting),
      close() {},
    };
    const { gateway } = leader.host ?? assert.fail("no host");
    gateway.onOpened(connection);
    for (const frame of [[hello], [hello, hello], [hello]]) gateway.onMessages(connection, frame);
    assert.deepEqual(counts, [1, 3, 4]);
    await cluster.clock.pass(10);
    assert.deepEqual(counts, [1, 3, 4, 3, 1, 0]);
  });
});
