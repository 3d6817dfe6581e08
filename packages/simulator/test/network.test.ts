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
