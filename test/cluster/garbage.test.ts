import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { encodeClientFrame, encodeCommand, encodePeerFrame } from "@holdfast/wire";
import { WebSocket } from "ws";
import { TestCluster } from "../harness/cluster.js";

/** A small generator with a fixed seed: a failure can be repeated. */
function generator(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

function randomBytes(random: () => number, length: number): Uint8Array {
  return Uint8Array.from({ length }, () => Math.floor(random() * 256));
}

function mutate(random: () => number, bytes: Uint8Array): Uint8Array {
  const copy = Uint8Array.from(bytes);
  const changes = 1 + Math.floor(random() * 3);
  for (let count = 0; count < changes; count += 1)
    copy[Math.floor(random() * copy.length)] = Math.floor(random() * 256);
  return random() < 0.2 ? copy.subarray(0, Math.floor(random() * copy.length)) : copy;
}

/** Sends frames one after another, on a new connection whenever the node has closed the last. */
async function bombard(url: string, first: Uint8Array | null, frames: Iterable<Uint8Array>): Promise<number> {
  let closed = 0;
  let sent = 0;
  let socket: WebSocket | null = null;
  for (const frame of frames) {
    if (socket === null || socket.readyState !== WebSocket.OPEN) {
      socket?.terminate();
      socket = new WebSocket(url, { perMessageDeflate: false });
      const opening: WebSocket = socket;
      const isOpen = await new Promise<boolean>((resolve) => {
        opening.once("open", () => resolve(true));
        opening.once("error", () => resolve(false));
      });
      assert.ok(isOpen, "the node takes connections");
      opening.on("error", () => {});
      closed += 1;
      if (first !== null) opening.send(first);
    }
    socket.send(frame, () => {});
    sent += 1;
    await (sent % 25 === 0 ? roundTrip(socket) : new Promise(setImmediate));
  }
  socket?.terminate();
  return closed;
}

/** What the node says of the frames before has come, or comes with the next one. */
async function roundTrip(socket: WebSocket): Promise<void> {
  if (socket.readyState !== WebSocket.OPEN) return;
  await new Promise<void>((resolve) => {
    socket.once("pong", resolve);
    socket.once("close", () => resolve());
    socket.ping(undefined, undefined, () => {});
  });
}

describe("1,000 random and 1,000 mutated frames to each port", { timeout: 120_000 }, () => {
  let cluster: TestCluster;

  before(async () => {
    cluster = await TestCluster.start();
  });
  after(async () => cluster.close());

  const hello = encodeClientFrame([
    { kind: "hello", protocol: 1, features: [], clusterId: null, seenIndex: 0, info: "fuzz" },
  ]);

  function clientFrames(): Uint8Array[] {
    const key = "0123456789abcdef0123456789abcdef";
    const open = encodeCommand({ kind: "openSession", key, ttlMs: 5_000, info: "fuzz" });
    const acquire = encodeCommand({
      kind: "acquire",
      session: 2,
      request: 1,
      settled: 1,
      seen: [],
      names: ["fuzz"],
      mode: "exclusive",
      slots: 0,
      wait: true,
      lockDelayMs: 0,
      maxHoldMs: 0,
      info: "",
    });
    return [
      hello,
      encodeClientFrame([{ kind: "command", payload: open }]),
      encodeClientFrame([{ kind: "command", payload: acquire }]),
      encodeClientFrame([{ kind: "keepalive", session: 2, number: 1 }]),
      encodeClientFrame([{ kind: "resume", session: 2, key }]),
      encodeClientFrame([{ kind: "query", id: 1, query: { kind: "list", prefix: "", after: "", limit: 10 } }]),
      encodeClientFrame([{ kind: "forceRelease", id: 2, name: "fuzz", token: 3, principal: "fuzz", lockDelayMs: 0 }]),
    ];
  }

  async function everythingStillWorks(terms: readonly number[]): Promise<void> {
    for (const node of cluster.nodes) assert.ok(node.isRunning, `${node.id} runs: ${node.log().slice(-2_000)}`);
    const client = await cluster.connect();
    const lock = await client.acquire("after the storm", { waitMs: 20_000 });
    assert.equal(await lock.release(), "released");
    const states = (await client.status()).map((one) => ("status" in one && one.status ? one.status.term : -1));
    assert.deepEqual(states, terms, "no term has moved: no message of a stranger counted");
    await client.close({ drainMs: 0 });
  }

  async function terms(): Promise<number[]> {
    const client = await cluster.connect();
    const all = (await client.status()).map((one) => ("status" in one && one.status ? one.status.term : -1));
    await client.close({ drainMs: 0 });
    return all;
  }

  it("client port", async () => {
    const before = await terms();
    const leader = await cluster.leader();
    const random = generator(7);
    const url = `ws://${leader.endpoint}/`;
    const good = clientFrames();
    const noise = Array.from({ length: 1_000 }, () => randomBytes(random, 1 + Math.floor(random() * 300)));
    const mutants = Array.from({ length: 1_000 }, (_, at) => mutate(random, good[at % good.length] as Uint8Array));
    assert.ok((await bombard(url, hello, noise)) > 1, "random frames close the connection");
    await bombard(url, hello, mutants);
    await everythingStillWorks(before);
  });

  it("peer port", async () => {
    const before = await terms();
    const leader = await cluster.leader();
    const random = generator(11);
    const url = `ws://127.0.0.1:${leader.peerPort}/`;
    const good = [
      encodePeerFrame({
        kind: "hello",
        protocol: 1,
        cluster: "test",
        from: "n9",
        to: leader.id,
        instance: "x",
        clusterId: null,
        boot: 1,
        term: null,
        last: null,
        versions: { min: 1, max: 1 },
      }),
      encodePeerFrame({ kind: "goodbye" }),
      encodePeerFrame({ kind: "raft", messages: [{ kind: "voteAnswer", term: 1_000 as never, granted: true }] }),
    ];
    const noise = Array.from({ length: 1_000 }, () => randomBytes(random, 1 + Math.floor(random() * 300)));
    const mutants = Array.from({ length: 1_000 }, (_, at) => mutate(random, good[at % good.length] as Uint8Array));
    assert.ok((await bombard(url, null, noise)) > 1, "random frames close the connection");
    await bombard(url, null, mutants);
    await everythingStillWorks(before);
  });
});
