/** Random faults over many sockets: whatever happens, a socket shows a prefix of what was sent into it, in order, and ends at most once. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Attach, FrameSocket } from "@holdfast/server/parts";
import { createPeerTransport } from "../src/network/index.js";
import type { NetworkCounts, Undo } from "../src/network/index.js";
import { streamOf } from "../src/random.js";
import type { Random } from "../src/random.js";
import { NetworkFixture, peerPort } from "./network-fixture.js";

const names = ["a", "b", "c"];

/** One end of one socket. It sends numbers from 0 on, and wants to read the same. */
class End {
  readonly place: string;
  readonly socket: FrameSocket;
  sent = 0;
  received = 0;
  isClosed = false;
  /** It was closed or killed from this side. */
  isLeft = false;
  other: End | null = null;

  constructor(place: string, attach: Attach) {
    this.place = place;
    this.socket = attach({
      onMessage: (bytes) => {
        assert.ok(!this.isClosed && !this.isLeft, "nothing is read after the end");
        assert.equal(new DataView(bytes.buffer).getUint32(0), this.received);
        this.received += 1;
      },
      onClosed: () => {
        assert.equal(this.isClosed, false);
        this.isClosed = true;
      },
    });
  }

  send(size: number): void {
    const bytes = new Uint8Array(4 + size);
    new DataView(bytes.buffer).setUint32(0, this.sent);
    if (this.socket.send(bytes)) this.sent += 1;
  }
}

class Swarm {
  readonly world: NetworkFixture;
  readonly ends: End[] = [];
  readonly random: Random;
  readonly #undos: Undo[] = [];
  readonly #calls = new Map<string, End>();
  #dials = 0;

  constructor(seed: number) {
    this.random = streamOf(seed, "swarm");
    this.world = new NetworkFixture({ kernelBytes: this.random.pick([500, 5_000, 262_144]) }, seed);
    for (const name of names) this.listen(name);
  }

  listen(name: string): void {
    const options = { process: name, secret: null, socketsMax: 1_000 };
    const transport = createPeerTransport(this.world.network, name, this.world.process(name));
    const acceptor = transport.createAcceptor(options, ({ dial }, attach) => this.#join(String(dial), name, attach));
    void acceptor.listen({ host: name, port: peerPort });
  }

  dial(from: string, to: string): void {
    this.#dials += 1;
    const dial = this.#dials;
    const request = {
      address: `${to}:${peerPort}`,
      lane: "data",
      process: from,
      dial,
      secret: null,
      handshakeMs: 800,
    } as const;
    let isOver = false;
    const once = (): void => {
      assert.equal(isOver, false);
      isOver = true;
    };
    createPeerTransport(this.world.network, from, this.world.process(from)).dial(request, {
      onOpened: (_, attach) => {
        once();
        this.#join(String(dial), from, attach);
      },
      onUnauthorized: () => assert.fail("no secret"),
      onFailed: once,
    });
  }

  kill(name: string): void {
    this.world.kill(name, this.random.pick(["process", "machine"]));
    for (const end of this.ends) if (end.place === name) end.isLeft = true;
    this.world.scheduler.after(this.random.logUniform(0.1, 1_000), "restart", () => {
      if (this.world.network.place(name).listenerAt(peerPort) === null) this.listen(name);
    });
  }

  step(): void {
    const { random, world } = this;
    const [from, to] = random.shuffle(names) as [string, string];
    const { network } = world;
    const act = random.pick<() => void>([
      () => this.dial(from, to),
      () => this.#undos.push(network.cut(from, to)),
      () => this.#undos.push(network.lossy(from, to, random.fraction())),
      () => this.#undos.push(network.throttle(from, to, random.logUniform(100, 1e6))),
      () => this.#undos.push(network.slow(from, to, { delayMs: random.logUniform(1, 500), jitterMs: 100 })),
      () => this.#undos.splice(random.integer(this.#undos.length), 1)[0]?.(),
      () => this.#undos.splice(random.integer(this.#undos.length), 1)[0]?.(),
      () => this.#undos.splice(random.integer(this.#undos.length), 1)[0]?.(),
      () => random.chance(0.3) && network.reset(from, to, 0.5),
      () => random.chance(0.3) && this.kill(from),
      () => world.process(from).pause(random.logUniform(1, 500)),
    ]);
    act();
    for (const end of this.ends) if (!end.isLeft && !end.isClosed && random.chance(0.5)) this.#use(end);
  }

  heal(): void {
    for (const undo of this.#undos.splice(0)) undo();
    for (const end of this.ends) if (!end.isLeft) end.socket.resume();
  }

  #use(end: End): void {
    const { random } = this;
    const { socket } = end;
    for (let left = random.integer(5); left > 0; left -= 1) end.send(random.integer(300));
    if (random.chance(0.1)) socket.pause();
    if (random.chance(0.2)) socket.resume();
    if (!random.chance(0.03)) return;
    end.isLeft = true;
    if (random.chance(0.5)) socket.close(1000, "enough");
    else socket.terminate("enough");
  }

  #join(dial: string, place: string, attach: Attach): void {
    const end = new End(place, attach);
    this.ends.push(end);
    end.other = this.#calls.get(dial) ?? null;
    if (end.other !== null) end.other.other = end;
    this.#calls.set(dial, end);
  }
}

async function run(seed: number): Promise<{ digest: string; counts: NetworkCounts }> {
  const swarm = new Swarm(seed);
  const { world } = swarm;
  for (let step = 0; step < 150; step += 1) {
    swarm.step();
    await world.pass(swarm.random.logUniform(0.1, 300));
  }
  swarm.heal();
  for (let round = 0; round < 3; round += 1) {
    await world.pass(30_000);
    for (const end of swarm.ends) if (!end.isLeft && !end.isClosed) end.send(0);
  }
  await world.pass(30_000);
  for (const end of swarm.ends) {
    const { other } = end;
    if (other === null) continue;
    assert.ok(end.received <= other.sent);
    if (end.isLeft || end.isClosed) assert.ok(other.isLeft || other.isClosed, "the end of one is the end of both");
    else assert.equal(end.received, other.sent, "all has arrived");
  }
  const alive = swarm.ends.filter((end) => !end.isLeft && !end.isClosed).length;
  const known = names.reduce((sum, name) => sum + world.network.place(name).endpoints.size, 0);
  assert.equal(known, alive, "nothing is left behind");
  return { digest: world.hash.digest(), counts: world.network.counts };
}

test("sockets keep their order and their end under random faults", async () => {
  const totals = new Map<string, number>();
  for (let seed = 1; seed <= 40; seed += 1) {
    const { counts } = await run(seed);
    for (const [name, count] of Object.entries(counts)) totals.set(name, (totals.get(name) ?? 0) + count);
  }
  // Nothing here calls with a wrong secret, looks at what piles up, or could stand a frame that comes twice.
  for (const name of ["rejectedDials", "peerBuffersFull", "clientBuffersFull", "repeats"]) totals.delete(name);
  assert.deepEqual(
    [...totals].filter(([, count]) => count === 0),
    [],
    "every fault has bitten",
  );
});

test("a random run repeats", async () => {
  assert.equal((await run(5)).digest, (await run(5)).digest);
});
