import { strict as assert } from "node:assert";
import { once } from "node:events";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { afterEach, describe, test } from "node:test";
import { decodePeerFrame, encodePeerFrame, limits } from "@holdfast/wire";
import { WebSocket } from "ws";
import { append, freePorts, heartbeat, sleep, until } from "./helpers.js";
import { answerAs, call, closeServers, endAll, helloFrom, start } from "./raw-peers.js";
import type { RawCaller } from "./raw-peers.js";

afterEach(endAll);

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
    for (let dial = 1; dial <= 200 && refused === ""; dial += 1) {
      await call(p1, dial).then(
        (caller) => callers.push(caller),
        (error: Error) => (refused = error.message),
      );
    }
    assert.match(refused, /503/);
    assert.equal(callers.length, 128, "8 for each peer that there may be, and 16 to spare");
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
