/** Production code over the virtual network: peer links as a node runs them, and the port of the client library. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createPeerLinks } from "@holdfast/server/parts";
import type { DurableFacts, ServerPeerLinks } from "@holdfast/server/parts";
import { createClientTransport, createPeerTransport } from "../src/network/index.js";
import type { TappedFrame } from "../src/network/index.js";
import { streamOf } from "../src/random.js";
import { frame, NetworkFixture, peerPort } from "./network-fixture.js";

const silent = { debug() {}, info() {}, warn() {}, error() {} };
const ids = ["n1", "n2"];
const noPromises = { term: 0, last: { term: 0, index: 0 } } as DurableFacts;

interface Node {
  readonly links: ServerPeerLinks;
  readonly gone: string[];
  readonly resets: string[];
}

function startNode(world: NetworkFixture, id: string): Node {
  const process = world.process(id);
  const random = streamOf(1, `node ${id}`);
  const gone: string[] = [];
  const resets: string[] = [];
  const links = createPeerLinks(
    {
      self: { id, instance: `${id}-1`, boot: 1, versions: { min: 1, max: 1 }, listen: { host: id, port: peerPort } },
      cluster: "test",
      peers: ids.filter((other) => other !== id).map((other) => ({ id: other, address: `${other}:${peerPort}` })),
      secret: "the secret",
      electionTimeoutMs: 500,
      bufferedBytesMax: 1_000_000,
    },
    {
      clock: process,
      random,
      logger: silent,
      transport: createPeerTransport(world.network, id, process),
      drawName: () => random.key(),
      clusterVersion: () => 1,
    },
    {
      onMessages: () => undefined,
      onPeerGone: (peer) => gone.push(peer),
      onPeerReset: (peer) => resets.push(peer),
      onRefused: ({ problem }) => assert.fail(problem),
      onReplaced: () => undefined,
      onMet: () => undefined,
      onFormed: () => undefined,
    },
  );
  const voters = ids.map((each) => ({ id: each, instance: `${each}-1`, peer: `${each}:1`, client: `${each}:2` }));
  const configuration = { voters, outgoing: [], learners: [], removed: [] };
  links.becomeFormed({ clusterId: "c".repeat(32), firstIndex: 1, configuration }, noPromises);
  void links.start();
  return { links, gone, resets };
}

test("two nodes link up, lose each other in a cut, and find each other again", async () => {
  const world = new NetworkFixture();
  const [a, b] = [startNode(world, "n1"), startNode(world, "n2")];
  const links = (): number[] => [a, b].map((node) => node.links.figures().links);
  await world.pass(1_000);
  assert.deepEqual(links(), [4, 4]);
  const heals = [world.network.cut("n1", "n2"), world.network.cut("n2", "n1")];
  // Sweeps are two seconds apart, and the third finds two of silence.
  await world.pass(7_000);
  assert.deepEqual(links(), [0, 0]);
  for (const heal of heals) heal();
  await world.pass(5_000);
  assert.deepEqual(links(), [4, 4]);
  assert.deepEqual([a.gone, b.gone], [[], []], "silence is no death");
  assert.ok(world.network.counts.hungDials > 0);
});

test("a killed process is known to be gone at once, a machine without power isn't", async () => {
  for (const kind of ["process", "machine"] as const) {
    const world = new NetworkFixture();
    const [a] = [startNode(world, "n1"), startNode(world, "n2")];
    await world.pass(1_000);
    world.kill("n2", kind);
    await world.pass(100);
    assert.deepEqual(a.gone, kind === "process" ? ["n2"] : []);
    await world.pass(5_000);
    const before = a.resets.length;
    startNode(world, "n2");
    await world.pass(5_000);
    assert.equal(a.links.figures().links, 4);
    assert.ok(a.resets.length > before);
  }
});

test("peers with another secret are not let in", async () => {
  const world = new NetworkFixture();
  const of = (name: string) => createPeerTransport(world.network, name, world.process(name));
  const options = { process: "b's", secret: "right", socketsMax: 1 };
  void of("b")
    .createAcceptor(options, (_, attach) => void attach({ onMessage: () => undefined, onClosed: () => undefined }))
    .listen({ host: "b", port: peerPort });
  const dial = async (secret: string | null): Promise<string[]> => {
    const heard: string[] = [];
    const request = {
      address: `b:${peerPort}`,
      lane: "control",
      process: "a's",
      dial: 1,
      secret,
      handshakeMs: 500,
    } as const;
    of("a").dial(request, {
      onOpened: (process, attach) => {
        heard.push(`opened by ${process}`);
        attach({ onMessage: () => undefined, onClosed: () => undefined });
      },
      onUnauthorized: () => heard.push("unauthorized"),
      onFailed: (kind, problem) => heard.push(`${kind}: ${problem}`),
    });
    await world.pass(100);
    return heard;
  };
  assert.deepEqual(await dial("wrong"), ["unauthorized", "dialFailed: answered with HTTP 401"]);
  assert.deepEqual(await dial("right"), ["opened by b's"]);
  assert.deepEqual(await dial("right"), ["dialFailed: answered with HTTP 503"], "it is full");
});

test("a cancelled dial tells nothing, and leaves nothing behind", async () => {
  const world = new NetworkFixture();
  void world.listen("b");
  const request = {
    address: `b:${peerPort}`,
    lane: "control",
    process: "",
    dial: 1,
    secret: null,
    handshakeMs: 500,
  } as const;
  for (const afterMs of [0, 0.5, 1, 1.5, 2]) {
    const fail = (): void => assert.fail("cancelled");
    const dial = createPeerTransport(world.network, "a", world.process("a")).dial(request, {
      onOpened: (_, attach) => void attach({ onMessage: () => undefined, onClosed: () => undefined }),
      onUnauthorized: fail,
      onFailed: fail,
    });
    await world.pass(afterMs);
    dial.cancel();
  }
  world.kill("a", "process");
  await world.pass(6_000);
  assert.deepEqual([world.network.place("a").endpoints.size, world.network.place("b").endpoints.size], [0, 0]);
});

test("a client's socket opens, talks, is pinged and closed, and its frames are seen", async () => {
  const world = new NetworkFixture();
  const seen: string[] = [];
  const tap = ({ client, node, direction, phase, bytes }: TappedFrame): void => {
    seen.push(`${client} ${node} ${direction} ${phase} ${bytes[0]}`);
  };
  const transport = createClientTransport(world.network, { place: "c1", process: world.process("c1"), tap });
  const heard: string[] = [];
  const events = {
    onOpened: () => heard.push("opened"),
    onFrame: (bytes: Uint8Array) => heard.push(`frame ${bytes[0]}`),
    onPong: () => heard.push("pong"),
    onClosed: (problem: string) => heard.push(problem),
  };
  transport.open("n1:7101", events);
  transport.open("no address", events);
  await world.pass(10);
  assert.deepEqual(heard.splice(0).sort(), ["connect ECONNREFUSED n1:7101", "getaddrinfo ENOTFOUND no address"]);
  void world.listenForClients("n1", 7101);
  const socket = transport.open("n1:7101", events);
  socket.send(frame(9));
  await world.pass(10);
  socket.send(frame(1));
  socket.ping();
  await world.pass(10);
  const far = world.takenAt("n1");
  far.socket.send(frame(2));
  far.socket.close(1001, "the node is stopping");
  await world.pass(10);
  assert.deepEqual(heard.splice(0), ["opened", "pong", "frame 2", "closed with code 1001"]);
  assert.deepEqual(far.messages, [1], "what was sent before it was open is dropped");
  assert.deepEqual(
    seen,
    ["toNode sent 1", "toNode delivered 1", "toClient sent 2", "toClient delivered 2"].map((text) => `c1 n1 ${text}`),
  );
});

test("a client hears no more of a socket that it has closed or cut", async () => {
  const world = new NetworkFixture();
  void world.listenForClients("n1", 7101);
  const transport = createClientTransport(world.network, { place: "c1", process: world.process("c1"), tap: null });
  const heard: string[] = [];
  const events = {
    onOpened: () => heard.push("opened"),
    onFrame: () => heard.push("frame"),
    onPong: () => heard.push("pong"),
    onClosed: (problem: string) => heard.push(problem),
  };
  const sockets = [transport.open("n1:7101", events), transport.open("n1:7101", events)];
  await world.pass(10);
  assert.deepEqual(heard.splice(0), ["opened", "opened"]);
  for (const position of [0, 1]) world.takenAt("n1", position).socket.send(frame(1));
  sockets[0]?.close();
  sockets[1]?.terminate();
  transport.open("n1:7101", events).close();
  await world.pass(3_000);
  assert.deepEqual(heard, []);
  // The calls may have come in any order.
  const closed = [0, 1].map((position) => world.takenAt("n1", position).closed);
  assert.deepEqual(new Set(closed), new Set([null, "closed without a closing handshake"]));
});

test("a client gives a handshake two seconds, and cuts off a node that doesn't read", async () => {
  const world = new NetworkFixture();
  void world.listenForClients("n1", 7101);
  const transport = createClientTransport(world.network, { place: "c1", process: world.process("c1"), tap: null });
  const heard: string[] = [];
  const events = {
    onOpened: () => heard.push("opened"),
    onFrame: () => undefined,
    onPong: () => undefined,
    onClosed: (problem: string) => heard.push(problem),
  };
  const heal = world.network.cut("c1", "n1");
  transport.open("n1:7101", events);
  await world.pass(1_990);
  assert.deepEqual(heard, []);
  await world.pass(20);
  assert.deepEqual(heard.splice(0), ["Opening handshake has timed out"]);
  heal();
  const socket = transport.open("n1:7101", events);
  await world.pass(10);
  world.takenAt("n1").socket.pause();
  for (let sent = 0; sent < 10; sent += 1) socket.send(frame(1, 1_000_000));
  await world.pass(10);
  assert.deepEqual(heard, ["opened", "reads too slowly"]);
});
