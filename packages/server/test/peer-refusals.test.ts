import { strict as assert } from "node:assert";
import { afterEach, describe, test } from "node:test";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { once } from "node:events";
import type { Term } from "@holdfast/raft";
import { decodePeerFrame, encodePeerFrame, limits } from "@holdfast/wire";
import type { PeerFrame, PeerHello } from "@holdfast/wire";
import { WebSocket, WebSocketServer } from "ws";
import { allFormed, clusterId, instanceOf, noPromises, recordedLinks } from "./peer-harness.js";
import type { LinkSetup, RecordedLinks } from "./peer-harness.js";
import { append, configurationOf, freePorts, heartbeat, sleep, until } from "./helpers.js";

const running: RecordedLinks[] = [];
const sockets: WebSocket[] = [];
const servers: WebSocketServer[] = [];

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.terminate();
  closeServers();
  await Promise.all(running.splice(0).map(({ links }) => links.close()));
});

/** As a process that dies: the listener and all sockets at once. */
function closeServers(): void {
  for (const server of servers.splice(0)) {
    server.close();
    for (const socket of server.clients) socket.terminate();
  }
}

async function start(setup: LinkSetup, facts = allFormed, durable = noPromises): Promise<RecordedLinks> {
  const recorded = recordedLinks(setup);
  running.push(recorded);
  recorded.links.becomeFormed(facts, durable);
  await recorded.links.start();
  return recorded;
}

async function startUnformed(setup: LinkSetup): Promise<RecordedLinks> {
  const recorded = recordedLinks(setup);
  running.push(recorded);
  await recorded.links.start();
  return recorded;
}

function helloFrom(from: string, changes: Partial<PeerHello> = {}): PeerHello {
  return {
    kind: "hello",
    protocol: limits.protocolVersion,
    cluster: "test",
    from,
    to: "n1",
    instance: instanceOf(from),
    clusterId,
    boot: 1,
    term: 0,
    last: noPromises.last,
    ...changes,
  };
}

interface RawCaller {
  readonly socket: WebSocket;
  readonly frames: PeerFrame[];
  readonly closed: { code: number | null };
  send(frame: PeerFrame): void;
}

/** A caller that a test plays by hand. */
async function call(port: number, dial: number, lane = "control", process = "f".repeat(32)): Promise<RawCaller> {
  const headers = { "holdfast-process": process, "holdfast-dial": String(dial) };
  const socket = new WebSocket(`ws://127.0.0.1:${port}/peer/${lane}`, { headers, perMessageDeflate: false });
  sockets.push(socket);
  const frames: PeerFrame[] = [];
  const closed: { code: number | null } = { code: null };
  socket.on("error", () => undefined);
  socket.on("message", (data) => frames.push(decodePeerFrame(data as Buffer)));
  socket.on("close", (code) => (closed.code = code));
  await once(socket, "open");
  return { socket, frames, closed, send: (frame) => socket.send(encodePeerFrame(frame)) };
}

/** A listener that a test plays by hand: says the hello it is given on every lane. */
async function answerAs(hello: PeerHello, onLink: (lane: string, socket: WebSocket) => void, at = 0): Promise<number> {
  const server = new WebSocketServer({ port: at, host: "127.0.0.1", perMessageDeflate: false });
  servers.push(server);
  server.on("headers", (headers) => headers.push(`holdfast-process: ${"e".repeat(32)}`));
  server.on("connection", (socket, request) => {
    socket.on("error", () => undefined);
    socket.once("message", () => {
      socket.send(encodePeerFrame(hello));
      onLink((request.url ?? "").replace("/peer/", ""), socket);
    });
  });
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

describe("a hello is refused", () => {
  test("with another cluster's name, by both", async () => {
    const [p1 = 0, p2 = 0] = await freePorts(2);
    const a = await start({ id: "n1", port: p1, peers: { n2: p2 } });
    const b = await start({ id: "n2", port: p2, peers: { n1: p1 }, cluster: "other" });
    await until(() => a.refusals.length > 0 && b.refusals.length > 0, "both told");
    assert.deepEqual(
      [a.refusals[0]?.refusal, b.refusals[0]?.refusal.code, b.refusals[0]?.isPeerFormed],
      [
        { from: "n2", code: "wrong_cluster", problem: 'n2 belongs to cluster "other", not "test"' },
        "wrong_cluster",
        true,
      ],
    );
    assert.equal(a.links.met().size, 0);
  });

  test("with another cluster id, by both", async () => {
    const [p1 = 0, p2 = 0] = await freePorts(2);
    const a = await start({ id: "n1", port: p1, peers: { n2: p2 } });
    const b = await start({ id: "n2", port: p2, peers: { n1: p1 } }, { ...allFormed, clusterId: "d".repeat(32) });
    await until(() => a.refusals.length > 0 && b.refusals.length > 0, "both told");
    assert.deepEqual([a.refusals[0]?.refusal.code, b.refusals[0]?.refusal.code], ["wrong_cluster", "wrong_cluster"]);
  });

  test("with a wiped directory: only the wiped node is at fault", async () => {
    const [p1 = 0, p2 = 0] = await freePorts(2);
    const a = await start({ id: "n1", port: p1, peers: { n2: p2 } });
    const b = await startUnformed({ id: "n2", port: p2, peers: { n1: p1 }, instance: "fresh" });
    await until(() => b.refusals.length > 0, "told");
    assert.deepEqual(b.refusals[0], {
      refusal: {
        from: "n1",
        code: "wrong_instance",
        problem: "the cluster knows n2 with another data directory (instance instance-n2, not fresh), says n1",
      },
      isPeerFormed: true,
    });
    await sleep(100);
    assert.deepEqual([a.refusals, b.formed], [[], []]);
  });

  test("from a node that the configuration doesn't have, or has removed", async () => {
    const [p1 = 0, p2 = 0] = await freePorts(2);
    const withoutTwo = { ...configurationOf({ n1: instanceOf("n1"), n3: instanceOf("n3") }), removed: ["n3"] };
    await start({ id: "n1", port: p1, peers: { n2: p2 } }, { ...allFormed, configuration: withoutTwo });
    const b = await start({ id: "n2", port: p2, peers: { n1: p1 } });
    await until(() => b.refusals.length > 0, "told");
    assert.deepEqual(b.refusals[0]?.refusal, {
      from: "n1",
      code: "unknown_node",
      problem: "the cluster has no node n2",
    });
    const caller = await call(p1, 1);
    caller.send(helloFrom("n3"));
    await until(() => caller.frames.length === 2, "hello and refusal");
    assert.deepEqual(caller.frames[1], {
      kind: "refused",
      code: "unknown_node",
      problem: "n3 was removed from this cluster, and an id never comes back",
    });
  });

  test("at an address where another node answers", async () => {
    const [p1 = 0, p3 = 0] = await freePorts(2);
    const a = await startUnformed({ id: "n1", port: p1, peers: { n2: p3, n3: 1 } });
    await startUnformed({ id: "n3", port: p3, peers: { n1: p1, n2: 1 } });
    await until(() => a.log.some(({ text }) => text.includes("refused n3")), "said");
    await until(() => a.refusals.length > 0, "told");
    for (const { refusal } of a.refusals) assert.equal(refusal.code, "wrong_address");
  });

  test("with another protocol version", async () => {
    const [p1 = 0] = await freePorts(1);
    await start({ id: "n1", port: p1, peers: { n2: 1 } });
    const caller = await call(p1, 1);
    caller.send(helloFrom("n2", { protocol: 99 }));
    await until(() => caller.closed.code !== null, "closed");
    assert.deepEqual(
      caller.frames.map((frame) => frame.kind),
      ["hello", "refused"],
    );
    assert.deepEqual(caller.frames[1], {
      kind: "refused",
      code: "incompatible",
      problem: `n1 speaks peer protocol ${limits.protocolVersion}, not 99`,
    });
  });

  test("with another secret, before anything is said", async () => {
    const [p1 = 0, p2 = 0, p3 = 0] = await freePorts(3);
    const a = await start({ id: "n1", port: p1, peers: { n2: p2, n3: p3 }, secret: "right" });
    const b = await start({ id: "n2", port: p2, peers: { n1: p1 }, secret: "wrong" });
    await start({ id: "n3", port: p3, peers: { n1: p1 }, secret: "right" });
    await until(() => a.refusals.length > 0 && b.refusals.length > 0, "both told");
    assert.deepEqual(b.refusals[0], {
      refusal: { from: "n1", code: "unauthorized", problem: "the cluster secrets differ" },
      isPeerFormed: false,
    });
    await assert.rejects(call(p1, 1), /401/);
    await until(() => a.links.met().has("n3"), "the right one is let in");
    assert.ok(!a.links.met().has("n2"));
  });

  test("from an old copy of a directory", async () => {
    const [p1 = 0] = await freePorts(1);
    const a = await start({ id: "n1", port: p1, peers: { n2: 1 } });
    const refusalOf = async (hello: PeerHello, process: string): Promise<string | null> => {
      const caller = await call(p1, 1, "control", process.repeat(32));
      caller.send(hello);
      await until(() => caller.frames.length > 0, "an answer");
      await sleep(20);
      caller.socket.terminate();
      const refused = caller.frames.find((frame) => frame.kind === "refused");
      return refused?.kind === "refused" ? `${refused.code}: ${refused.problem.replace(/^.*old copy: /, "")}` : null;
    };
    const last = (term: number, index: number) => ({ term, index }) as typeof noPromises.last;
    assert.equal(await refusalOf(helloFrom("n2", { boot: 5, term: 3, last: last(3, 10) }), "a"), null);
    a.links.notePromise("n2", { term: 3, last: last(3, 40) });
    assert.equal(
      await refusalOf(helloFrom("n2", { boot: 5, term: 3, last: last(3, 10) }), "a"),
      null,
      "the same process again",
    );
    assert.equal(
      await refusalOf(helloFrom("n2", { boot: 4, term: 3, last: last(3, 40) }), "b"),
      "old_copy: this is its start 4, and start 5 was seen before",
    );
    assert.equal(
      await refusalOf(helloFrom("n2", { boot: 5, term: 3, last: last(3, 40) }), "b"),
      "old_copy: two processes run as its start 5: one of them has a copy of the directory",
    );
    assert.equal(
      await refusalOf(helloFrom("n2", { boot: 6, term: 2, last: last(2, 90) }), "b"),
      "old_copy: its term is 2, and it has promised 3",
    );
    assert.equal(
      await refusalOf(helloFrom("n2", { boot: 6, term: 3, last: last(3, 39) }), "b"),
      "old_copy: its log ends at index 39, and it has promised index 40",
    );
    assert.equal(
      await refusalOf(helloFrom("n2", { boot: 6, term: null, last: null, clusterId: null }), "b"),
      "old_copy: it was formed before, and now it isn't",
    );
    assert.equal(
      await refusalOf(helloFrom("n2", { boot: 6, term: 4, last: last(3, 20) }), "b"),
      null,
      "a later leader may have cut its tail",
    );
    assert.equal(await refusalOf(helloFrom("n2", { boot: 7, term: 4, last: last(4, 60) }), "c"), null);
    const voter = await call(p1, 1, "control", "d".repeat(32));
    voter.send(helloFrom("n2", { boot: 8, term: 4, last: last(4, 60) }));
    voter.send({ kind: "raft", messages: [{ kind: "voteAnswer", term: 9 as Term, granted: true }] });
    await until(() => a.received.length === 1, "a vote");
    assert.equal(
      await refusalOf(helloFrom("n2", { boot: 9, term: 8, last: last(4, 60) }), "e"),
      "old_copy: its term is 8, and it has promised 9",
    );
  });
});

describe("a peer's socket", () => {
  test("the newest of two wins, whatever comes late", async () => {
    const [p1 = 0] = await freePorts(1);
    const a = await start({ id: "n1", port: p1, peers: { n2: 1 } });
    const first = await call(p1, 1);
    first.send(helloFrom("n2"));
    await until(() => first.frames.length === 1, "first is greeted");
    const second = await call(p1, 2);
    second.send(helloFrom("n2"));
    await until(() => second.frames.length === 1, "second is greeted");
    first.socket.send(encodePeerFrame({ kind: "raft", messages: [heartbeat(1)] }), () => undefined);
    second.send({ kind: "raft", messages: [heartbeat(2)] });
    await until(() => a.received.length > 0 && first.closed.code !== null, "the old one is closed");
    const late = await call(p1, 1);
    late.send(helloFrom("n2"));
    await until(() => late.closed.code !== null, "an older call that comes late is dropped");
    second.send({ kind: "raft", messages: [heartbeat(3)] });
    await until(() => a.received.length === 2, "the newest goes on");
    assert.deepEqual(
      a.received.map(({ message }) => (message.kind === "heartbeat" ? message.round : 0)),
      [2, 3],
    );
    assert.deepEqual(a.gone, []);
  });

  test("is closed for a bad checksum, garbage, text, a frame before hello, a second hello, an oversized frame", async () => {
    const [p1 = 0] = await freePorts(1);
    const a = await start({ id: "n1", port: p1, peers: { n2: 1 } });
    const good = encodePeerFrame({ kind: "raft", messages: [heartbeat(1)] });
    const flipped = Uint8Array.from(good, (byte, at) => (at === good.length - 1 ? byte ^ 1 : byte));
    const after: readonly (readonly [string, Uint8Array | string])[] = [
      ["bad checksum", flipped],
      ["garbage", new Uint8Array([1, 2, 3])],
      ["nothing", new Uint8Array(0)],
      ["text", "hello"],
      ["a second hello", encodePeerFrame(helloFrom("n2"))],
      ["oversized", new Uint8Array(limits.peerFrameBytesMax + 1)],
    ];
    let dial = 0;
    for (const [what, bytes] of after) {
      const caller = await call(p1, (dial += 1));
      caller.send(helloFrom("n2"));
      await until(() => caller.frames.length === 1, "greeted");
      caller.socket.send(bytes, () => undefined);
      caller.socket.send(good, () => undefined);
      await until(() => caller.closed.code !== null, what);
    }
    const early = await call(p1, (dial += 1));
    early.socket.send(good, () => undefined);
    await until(() => early.closed.code !== null, "raft before hello");
    assert.deepEqual(a.received, [], "nothing after the fault was taken");
    const caller = await call(p1, (dial += 1));
    caller.send(helloFrom("n2"));
    caller.send({ kind: "raft", messages: [heartbeat(9)] });
    await until(() => a.received.length === 1, "and the port still works");
  });

  test("nothing of raft's is said to a peer that isn't formed", async () => {
    const [p1 = 0] = await freePorts(1);
    const frames: string[] = [];
    const port = await answerAs(helloFrom("n2", { clusterId: null, term: null, last: null }), (_, socket) => {
      socket.on("message", (data) => frames.push(decodePeerFrame(data as Buffer).kind));
    });
    const a = await start({ id: "n1", port: p1, peers: { n2: port } });
    await until(() => frames.length > 0, "the configuration is handed on");
    a.links.send("n2", [heartbeat(1), append(1, 10)]);
    await sleep(50);
    assert.deepEqual(frames, ["formed"]);
    assert.deepEqual(a.resets, []);
  });

  test("a false alarm doesn't hide a true one of the same process", async () => {
    const [p1 = 0, p2 = 0] = await freePorts(2);
    const a = await start({ id: "n1", port: p1, peers: { n2: p2 } });
    for (const alarms of [1, 2]) {
      await answerAs(helloFrom("n2"), () => undefined, p2);
      await until(() => a.links.figures().links === 2, "linked");
      closeServers();
      await until(() => a.gone.length === alarms, `alarm ${alarms}`);
    }
  });

  test("a dial that hangs is begun anew when the peer calls", async () => {
    const [p1 = 0] = await freePorts(1);
    let dials = 0;
    const deaf = createServer((socket) => {
      dials += 1;
      socket.on("error", () => undefined);
    });
    deaf.listen(0, "127.0.0.1");
    await once(deaf, "listening");
    try {
      await start({
        id: "n1",
        port: p1,
        peers: { n2: (deaf.address() as AddressInfo).port },
        electionTimeoutMs: 1_500,
      });
      await until(() => dials === 2, "both lanes hang");
      await sleep(200);
      assert.equal(dials, 2, "the handshake has seconds");
      const caller = await call(p1, 1);
      caller.send(helloFrom("n2"));
      await until(() => dials === 4, "both are dialled anew", 1_000);
    } finally {
      deaf.close();
    }
  });

  test("a link that never lasts is not dialled without a pause", async () => {
    const [p1 = 0] = await freePorts(1);
    let links = 0;
    const port = await answerAs(helloFrom("n2"), (_, socket) => {
      links += 1;
      setImmediate(() => socket.terminate());
    });
    await start({ id: "n1", port: p1, peers: { n2: port } });
    await sleep(1_000);
    assert.ok(links >= 10 && links < 60, `${links} links in a second`);
  });

  test("raft's messages count only from a member, on the link that it dialled", async () => {
    const [p1 = 0] = await freePorts(1);
    const a = await start({ id: "n1", port: p1, peers: { n2: 1 } });
    const unformed = await call(p1, 1);
    unformed.send(helloFrom("n2", { clusterId: null, term: null, last: null }));
    unformed.send({ kind: "raft", messages: [heartbeat(1)] });
    await sleep(50);
    assert.deepEqual(a.received, []);
  });

  test("HTTP, other paths, browsers and callers without end are turned away", async () => {
    const [p1 = 0] = await freePorts(1);
    await start({ id: "n1", port: p1, peers: { n2: 1 } });
    assert.equal((await fetch(`http://127.0.0.1:${p1}/livez`)).status, 404);
    await assert.rejects(call(p1, 1, "nowhere"), /404/);
    const page = new WebSocket(`ws://127.0.0.1:${p1}/peer/control`, { origin: "http://evil.example" });
    await assert.rejects(once(page, "open"), /403/);
    const callers: RawCaller[] = [];
    let refused = "";
    for (let dial = 1; dial <= 40 && refused === ""; dial += 1) {
      await call(p1, dial).then(
        (caller) => callers.push(caller),
        (error: Error) => (refused = error.message),
      );
    }
    assert.match(refused, /503/);
    assert.equal(callers.length, 24, "8 for the one peer and 16 to spare");
  });

  test("a peer that stops reading gets a fresh link instead of a pile, and its other lane goes on", async () => {
    const [p1 = 0] = await freePorts(1);
    const lanes: string[] = [];
    const rounds: number[] = [];
    const port = await answerAs(helloFrom("n2"), (lane, socket) => {
      lanes.push(lane);
      if (lane === "data") socket.pause();
      else {
        socket.on("message", (data) => {
          const frame = decodePeerFrame(data as Buffer);
          if (frame.kind !== "raft") return;
          for (const message of frame.messages) if (message.kind === "heartbeat") rounds.push(message.round);
        });
      }
    });
    const bufferedBytesMax = 8 * 1024 * 1024;
    const a = await start({ id: "n1", port: p1, peers: { n2: port }, bufferedBytesMax });
    await until(() => lanes.length === 2, "both lanes");
    let most = 0;
    for (let n = 1; n <= 40; n += 1) {
      a.links.send("n2", [append(n, 1_000_000), heartbeat(n)]);
      most = Math.max(most, a.links.figures().bufferedBytes);
      await sleep(1);
    }
    await until(() => lanes.filter((lane) => lane === "data").length >= 2, "a fresh data link");
    await until(() => rounds.length === 40, "heartbeats were never stuck");
    assert.equal(lanes.filter((lane) => lane === "control").length, 1, "and their link never broke");
    assert.ok(most <= bufferedBytesMax, `${most} bytes waited`);
    assert.ok(a.resets.filter((peer) => peer === "n2").length >= 3, "each new link is a reset");
    assert.deepEqual(a.gone, []);
  });
});
