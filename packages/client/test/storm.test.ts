/** A thousand clients at once, in virtual time: started together, and left together by a cluster that comes back (lessons A 40). */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Holdfast } from "../src/holdfast.js";
import { World } from "./world/world.js";

const ttlMs = 6_000;

/** All in one moment, as after a deployment: each with a lock of its own. */
async function startAll(world: World, clients: number): Promise<Holdfast[]> {
  const connecting = Array.from({ length: clients }, (_, at) => world.connect({ ttlMs }, at + 1));
  const all = await world.within(20_000, Promise.all(connecting));
  const acquiring = all.map((holdfast, at) => holdfast.acquire(`lock ${at}`));
  await world.within(20_000, Promise.all(acquiring));
  return all;
}

/** The most that fall into one piece of `pieceMs`. */
function mostIn(times: readonly number[], pieceMs: number): number {
  const counts = new Map<number, number>();
  for (const ms of times) counts.set(Math.floor(ms / pieceMs), (counts.get(Math.floor(ms / pieceMs)) ?? 0) + 1);
  return Math.max(...counts.values());
}

test("a thousand clients started at once dial each node once at most, keep one socket, and renew in no step", async () => {
  const clients = 1_000;
  const world = new World();
  await startAll(world, clients);
  assert.ok(world.network.dialled.length <= 3 * clients, `${world.network.dialled.length} dials`);
  assert.equal(world.network.socketCount, clients);
  const opened = world.commands().filter(({ kind }) => kind === "openSession").length;
  assert.equal(opened, clients, "each session is opened once");

  const beganMs = world.clock.monotonicMs();
  world.cluster.received.length = 0;
  await world.clock.advance(ttlMs * 1.5);
  const times = world.keepalives().map(({ atMs }) => atMs);
  assert.ok(times.length >= 4 * clients && times.length <= 5 * clients, `${times.length} keepalives`);
  // Begun in one moment they spread over a tenth of their period at once, and further with each renewal.
  const first = times.filter((ms) => ms < beganMs + ttlMs / 2);
  const later = times.filter((ms) => ms >= beganMs + ttlMs);
  assert.ok(mostIn(first, 10) < clients / 10, `${mostIn(first, 10)} in 10 ms at first`);
  assert.ok(mostIn(later, 10) < mostIn(first, 10), `${mostIn(later, 10)} in 10 ms later`);
});

test("clients with many sessions each, whose keepalives share frames, renew in no step after a failover", async () => {
  const clients = 60;
  const sessions = 30;
  const world = new World();
  const all = await startAll(world, clients);
  const wanted = all.flatMap((holdfast, client) =>
    Array.from({ length: sessions }, (_, at) => holdfast.acquire(`lock ${client} ${at}`, { ttlMs: ttlMs + at + 1 })),
  );
  await world.within(20_000, Promise.all(wanted));
  await world.clock.advance(6 * ttlMs);
  world.cluster.elect("n2");
  // All resume and renew at once.
  await world.clock.advance(ttlMs / 5);
  world.cluster.received.length = 0;
  await world.clock.advance(ttlMs / 4);
  const times = world.keepalives().map(({ atMs }) => atMs);
  assert.ok(times.length >= clients * sessions, `${times.length} keepalives`);
  assert.ok(mostIn(times, 10) < times.length / 5, `${mostIn(times, 10)} of ${times.length} in 10 ms`);
});

test("clients that lose their cluster ask for it in no step, and all keep to one socket when it is back", async () => {
  const clients = 200;
  const world = new World();
  const all = await startAll(world, clients);
  for (const { id } of world.cluster.nodes) world.cluster.kill(id);
  // The first seconds are quick, for a failover takes a few hundred milliseconds.
  await world.clock.advance(10_000);
  const pieces: number[] = [];
  for (let piece = 0; piece < 50; piece += 1) {
    const before = world.network.dialled.length;
    await world.clock.advance(100);
    pieces.push(world.network.dialled.length - before);
  }
  const average = pieces.reduce((sum, count) => sum + count, 0) / pieces.length;
  const perSecond = (10 * average) / clients;
  assert.ok(perSecond > 3 && perSecond < 9, `${perSecond} dials a second and client, of three nodes`);
  assert.ok(Math.max(...pieces) < 1.5 * average, `${Math.max(...pieces)} dials in 100 ms, ${average} on average`);

  for (const { id } of world.cluster.nodes) world.cluster.restart(id);
  world.cluster.elect("n2");
  const dials = world.network.dialled.length;
  const acquiring = all.map((holdfast, at) => holdfast.acquire(`again ${at}`));
  await world.within(20_000, Promise.all(acquiring));
  await world.clock.advance(2_000);
  assert.equal(world.network.socketCount, clients);
  assert.ok(world.network.dialled.length - dials <= 4 * clients, `${world.network.dialled.length - dials} dials`);
});
