/** What becomes of sockets when a process dies, a machine dies, a reset comes, or one side closes. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { frame, marks, NetworkFixture } from "./network-fixture.js";

test("the death of a process closes its sockets, after what its kernel still had to send", async () => {
  const world = new NetworkFixture();
  const { near, far } = await world.link("a", "b");
  near.socket.send(frame(1));
  world.kill("a", "process");
  assert.equal(far.closed, undefined);
  await world.pass(10);
  assert.deepEqual(far.messages, [1]);
  assert.equal(far.closed, "closed without a closing handshake");
  assert.equal(near.closed, undefined, "the dead hear nothing");
  const again = world.dial("b", "a");
  await world.pass(10);
  assert.equal(again.failed, "connectionRefused");
});

test("what a dead process had not handed to its kernel is lost", async () => {
  const world = new NetworkFixture({ kernelBytes: 1_000 });
  const { near, far } = await world.link("a", "b");
  const heal = world.network.cut("a", "b");
  for (const mark of marks(0, 20)) near.socket.send(frame(mark, 94));
  assert.equal(near.socket.bufferedBytes, 20 * 100 - 1_000);
  world.kill("a", "process");
  heal();
  await world.pass(5_000);
  assert.deepEqual(far.messages, marks(0, 10));
  assert.equal(far.closed, "closed without a closing handshake");
  assert.equal(world.network.counts.framesLost, 10);
});

test("the death of a machine leaves the other end half-open, until the machine is back and knows nothing of it", async () => {
  const world = new NetworkFixture();
  const { near, far } = await world.link("a", "b");
  far.socket.send(frame(1));
  world.kill("b", "machine");
  await world.pass(5_000);
  near.socket.send(frame(2));
  assert.deepEqual([near.closed, near.messages], [undefined, []]);
  const hanging = world.dial("a", "b", 500);
  await world.pass(600);
  assert.equal(hanging.failed, "dialFailed");
  void world.listen("b");
  await world.pass(5_000);
  assert.equal(near.closed, "read ECONNRESET");
  assert.deepEqual(near.messages, [], "what the dead machine had to send is gone");
});

test("a reset closes both ends; in a one-way cut one of them stays half-open", async () => {
  const world = new NetworkFixture();
  const first = await world.link("a", "b");
  world.network.reset("b", "a");
  await world.pass(10);
  assert.deepEqual([first.near.closed, first.far.closed], ["read ECONNRESET", "read ECONNRESET"]);
  const second = await world.link("a", "b");
  const heal = world.network.cut("a", "b");
  world.network.reset("a", "b");
  await world.pass(1_000);
  assert.deepEqual([second.near.closed, second.far.closed], ["read ECONNRESET", undefined]);
  second.far.socket.send(frame(1));
  await world.pass(1_000);
  assert.equal(second.far.closed, undefined, "the answer to it got lost in the cut");
  heal();
  second.far.socket.send(frame(2));
  await world.pass(1_000);
  assert.equal(second.far.closed, "read ECONNRESET");
});

test("an orderly close sends what is queued, and both ends hear of it without a problem of the other's making", async () => {
  const world = new NetworkFixture();
  const { near, far } = await world.link("a", "b");
  near.socket.send(frame(1));
  near.socket.close(1001, "goodbye");
  assert.equal(near.socket.isOpen, false);
  assert.equal(near.socket.send(frame(2)), false);
  far.socket.send(frame(3));
  await world.pass(20);
  assert.deepEqual([far.messages, near.messages], [[1], []]);
  assert.deepEqual([near.closed, far.closed], ["goodbye", null]);
  assert.equal(world.network.counts.graceEnds, 0);
});

test("who closes and still listens hears what the other had to say", async () => {
  const world = new NetworkFixture();
  const { near, far } = await world.link("a", "b");
  near.socket.close(1008, "refused", true);
  far.socket.send(frame(3));
  await world.pass(20);
  assert.deepEqual(near.messages, [3]);
});

test("a close that isn't answered ends after half a second", async () => {
  const world = new NetworkFixture();
  const { near, far } = await world.link("a", "b");
  world.network.cut("a", "b");
  const sinceMs = world.nowMs;
  near.socket.close(1001, "goodbye");
  await world.pass(1_000);
  assert.equal(near.closed, "goodbye");
  assert.ok(near.closedMs >= sinceMs + 500 && near.closedMs < sinceMs + 510);
  assert.equal(far.closed, undefined);
});

test("a terminated socket is closed at once, but never within the call", async () => {
  const world = new NetworkFixture();
  const { near, far } = await world.link("a", "b");
  far.socket.send(frame(1));
  near.socket.terminate("abandoned");
  assert.equal(near.closed, undefined);
  await world.pass(20);
  assert.deepEqual([near.closed, near.messages], ["abandoned", []]);
  assert.equal(far.closed !== undefined, true);
});

test("what an old socket still held is read after its successor has opened", async () => {
  const world = new NetworkFixture();
  const { near, far } = await world.link("a", "b");
  const heal = world.network.cut("a", "b");
  for (const mark of marks(0, 3)) near.socket.send(frame(mark));
  await world.pass(2_000);
  near.socket.terminate("nothing was heard from it");
  heal();
  const second = await world.link("a", "b");
  second.near.socket.send(frame(9));
  await world.pass(5_000);
  assert.deepEqual([far.messages, second.far.messages], [marks(0, 3), [9]]);
  assert.ok((far.timesMs[0] as number) > (second.far.timesMs[0] as number));
  assert.equal(world.network.counts.lateDrains, 3);
});

test("frames for a paused process wait in its kernel, and die with it", async () => {
  const world = new NetworkFixture();
  const { near, far } = await world.link("a", "b");
  world.process("b").pause(1_000);
  for (const mark of marks(0, 5)) near.socket.send(frame(mark));
  await world.pass(900);
  assert.deepEqual(far.messages, []);
  await world.pass(200);
  assert.deepEqual(far.messages, marks(0, 5));
  world.process("b").pause(1_000);
  near.socket.send(frame(6));
  await world.pass(10);
  world.kill("b", "process");
  await world.pass(10);
  assert.equal(near.closed, "read ECONNRESET", "it left something unread");
});

test("who waits for a reader that has died with its machine finds out when the machine is back", async () => {
  const world = new NetworkFixture({ kernelBytes: 1_000 });
  const { near, far } = await world.link("a", "b");
  far.socket.pause();
  for (const mark of marks(0, 20)) near.socket.send(frame(mark, 94));
  await world.pass(10);
  world.kill("b", "machine");
  await world.pass(1_000);
  assert.equal(near.closed, undefined);
  void world.listen("b");
  await world.pass(5_000);
  assert.equal(near.closed, "read ECONNRESET");
});
