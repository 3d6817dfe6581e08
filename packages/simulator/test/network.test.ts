import assert from "node:assert/strict";
import { test } from "node:test";
import { frame, marks, NetworkFixture } from "./network-fixture.js";

function sendAll(socket: { send(bytes: Uint8Array): boolean }, which: readonly number[], length?: number): void {
  for (const mark of which) assert.equal(socket.send(frame(mark, length)), true);
}

test("frames arrive in order both ways, later than they were sent", async () => {
  const world = new NetworkFixture();
  const { near, far } = await world.link("a", "b");
  const sentMs = world.nowMs;
  sendAll(near.socket, marks(0, 100));
  sendAll(far.socket, marks(100, 200));
  assert.deepEqual([near.messages, far.messages], [[], []], "nothing runs inside of the sender");
  await world.pass(50);
  assert.deepEqual([far.messages, near.messages], [marks(0, 100), marks(100, 200)]);
  assert.ok(Math.min(...far.timesMs) >= sentMs + 0.2);
  assert.ok(Math.max(...far.timesMs) <= sentMs + 1);
});

test("what is sent in a cut arrives late and in order after it", async () => {
  const world = new NetworkFixture();
  const { near, far } = await world.link("a", "b");
  const heal = world.network.cut("a", "b");
  const healSecond = world.network.cut("a", "b");
  sendAll(near.socket, marks(0, 10));
  await world.pass(300);
  heal();
  heal();
  await world.pass(300);
  assert.deepEqual(far.messages, [], "the second cut still lasts");
  const healedMs = world.nowMs;
  healSecond();
  await world.pass(1_000);
  assert.deepEqual(far.messages, marks(0, 10));
  assert.ok((far.timesMs[0] as number) > healedMs + 1, "TCP needs a while to notice");
  assert.equal(world.network.counts.framesHeld, 10);
});

test("a cut in one direction leaves the other alone", async () => {
  const world = new NetworkFixture();
  const { near, far } = await world.link("a", "b");
  world.network.cut("a", "b");
  sendAll(near.socket, [1]);
  sendAll(far.socket, [2]);
  await world.pass(1_000);
  assert.deepEqual([far.messages, near.messages], [[], [2]]);
});

test("a dial is refused where nobody listens, and hangs in a cut", async () => {
  const world = new NetworkFixture();
  world.network.place("b");
  const refused = world.dial("a", "b");
  assert.equal(refused.failed, null, "never within dial()");
  await world.pass(10);
  assert.equal(refused.failed, "connectionRefused");
  world.network.cut("b", "a");
  const hanging = world.dial("a", "b", 700);
  await world.pass(690);
  assert.equal(hanging.failed, null);
  await world.pass(20);
  assert.equal(hanging.failed, "dialFailed");
  const { refusedDials, hungDials } = world.network.counts;
  assert.deepEqual({ refusedDials, hungDials }, { refusedDials: 2, hungDials: 1 });
});

test("who stops reading holds the sender back, and gets everything when it reads on", async () => {
  const world = new NetworkFixture({ kernelBytes: 10_000 });
  const { near, far } = await world.link("a", "b");
  far.socket.pause();
  sendAll(near.socket, marks(0, 100), 994);
  await world.pass(100);
  assert.deepEqual(far.messages, []);
  assert.equal(near.socket.bufferedBytes, 100 * 1_000 - 10_000);
  far.socket.resume();
  await world.pass(100);
  assert.deepEqual(far.messages, marks(0, 100));
  assert.equal(near.socket.bufferedBytes, 0);
});

test("a sweep finds silence, and no silence in a long frame that is still arriving", async () => {
  const world = new NetworkFixture();
  const { near, far } = await world.link("a", "b");
  assert.deepEqual([far.socket.sweep(), far.socket.sweep()], [1, 2]);
  near.socket.pingIfIdle();
  await world.pass(10);
  assert.equal(far.socket.sweep(), 0);
  near.socket.send(frame(1));
  await world.pass(10);
  assert.equal(far.socket.sweep(), 0);
  near.socket.pingIfIdle();
  await world.pass(10);
  assert.equal(far.socket.sweep(), 1, "there was no ping: something was sent since the last one");
  world.network.throttle("a", "b", 1_000);
  near.socket.send(frame(2, 4_000));
  await world.pass(1_000);
  assert.equal(far.socket.sweep(), 0);
  assert.deepEqual(far.messages, [1]);
});

test("a throttled way takes its time, and none any more when it is free again", async () => {
  const world = new NetworkFixture();
  const { near, far } = await world.link("a", "b");
  const sinceMs = world.nowMs;
  const free = world.network.throttle("a", "b", 10_000);
  sendAll(near.socket, marks(0, 20), 994);
  await world.pass(1_050);
  assert.deepEqual(far.messages, marks(0, 10));
  assert.ok((far.timesMs[0] as number) >= sinceMs + 100);
  free();
  await world.pass(2);
  assert.deepEqual(far.messages, marks(0, 20));
});

test("slow and lossy ways delay what they carry, in order", async () => {
  const world = new NetworkFixture();
  const { near, far } = await world.link("a", "b");
  const heal = world.network.slow("a", "b", { delayMs: 40, jitterMs: 20 });
  const sinceMs = world.nowMs;
  sendAll(near.socket, marks(0, 20));
  await world.pass(61);
  assert.deepEqual(far.messages, marks(0, 20));
  assert.ok((far.timesMs[0] as number) >= sinceMs + 40);
  heal();
  world.network.lossy("a", "b", 0.5);
  const lossyMs = world.nowMs;
  sendAll(near.socket, marks(20, 40));
  await world.pass(10_000);
  assert.deepEqual(far.messages, marks(0, 40));
  assert.ok((far.timesMs[39] as number) >= lossyMs + 200);
  assert.ok(world.network.counts.retransmissions > 0);
});

test("frames come once more, on the socket that there is then", async () => {
  const world = new NetworkFixture();
  const first = await world.link("a", "b");
  const heal = world.network.repeating("a", "b", { withinMs: 100, chanceFor: () => 1 });
  sendAll(first.near.socket, marks(0, 3));
  await world.pass(5);
  heal();
  first.near.socket.terminate("given up");
  const { near, far } = await world.link("a", "b");
  near.socket.send(frame(9));
  await world.pass(200);
  const { messages } = far;
  assert.equal(messages[0], 9, "a socket's own first frame comes first");
  assert.deepEqual([...first.far.messages, ...messages.slice(1)].sort(), [0, 0, 1, 1, 2, 2]);
  assert.equal(world.network.counts.repeats, 3);
});

test("the same seed runs the same, another one doesn't", async () => {
  const run = async (seed: number): Promise<string> => {
    const world = new NetworkFixture({}, seed);
    const { near, far } = await world.link("a", "b");
    const heal = world.network.cut("a", "b");
    sendAll(near.socket, marks(0, 10));
    sendAll(far.socket, marks(0, 10));
    await world.pass(500);
    heal();
    world.network.lossy("b", "a", 0.2);
    sendAll(far.socket, marks(10, 20));
    await world.pass(5_000);
    assert.equal(far.messages.length + near.messages.length, 30);
    return world.hash.digest();
  };
  const first = await run(7);
  assert.equal(await run(7), first);
  assert.notEqual(await run(8), first);
});
