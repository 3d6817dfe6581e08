import { strict as assert } from "node:assert";
import { once } from "node:events";
import { afterEach, describe, test } from "node:test";
import { decodeServerFrame, encodeClientFrame, limits } from "@holdfast/wire";
import type { ServerMessage } from "@holdfast/wire";
import { WebSocket } from "ws";
import { sleep, until } from "./helpers.js";
import { closing, endAll, hello, join, leaderMessage, rawSocket, start } from "./listener-harness.js";

afterEach(endAll);

describe("the client port", () => {
  test("hands decoded messages on, with their connection, in order", async () => {
    const { url, messages, opened } = await start();
    const first = await join(url);
    const second = await join(url);
    first.send(encodeClientFrame([hello, { kind: "keepalive", session: 5, number: 1 }]));
    first.send(encodeClientFrame([{ kind: "keepalive", session: 5, number: 2 }]));
    await until(() => messages.length === 3, "three messages");
    second.send(encodeClientFrame([hello]));
    await until(() => messages.length === 4, "four messages");
    assert.deepEqual(
      messages.map(({ connection, message }) => [
        connection.id,
        message.kind === "keepalive" ? message.number : message.kind,
      ]),
      [
        [1, "hello"],
        [1, 1],
        [1, 2],
        [2, "hello"],
      ],
    );
    assert.match(opened[0]?.remote ?? "", /^127\.0\.0\.1:\d+$/);
    assert.notEqual(opened[0]?.remote, opened[1]?.remote);
  });

  test("what one turn sends leaves in one frame, per connection", async () => {
    const { url, opened } = await start();
    const socket = await join(url);
    const other = await join(url);
    const frames: ServerMessage[][] = [];
    const otherFrames: ServerMessage[][] = [];
    socket.on("message", (data) => frames.push(decodeServerFrame(data as Buffer)));
    other.on("message", (data) => otherFrames.push(decodeServerFrame(data as Buffer)));
    const [mine, theirs] = opened;
    for (let n = 1; n <= 100; n += 1) {
      mine?.send(leaderMessage(n));
      if (n % 50 === 0) theirs?.send(leaderMessage(n));
    }
    await sleep(0);
    mine?.send(leaderMessage(101));
    await until(() => frames.length >= 2 && otherFrames.length >= 1, "frames");
    assert.deepEqual(
      frames.map((frame) => frame.length),
      [100, 1],
    );
    assert.deepEqual(
      otherFrames.map((frame) => frame.length),
      [2],
    );
    assert.deepEqual(frames[0]?.map((message) => (message.kind === "leader" ? message.leader?.id : "")).slice(0, 3), [
      "n1",
      "n2",
      "n3",
    ]);
  });

  test("what was sent before a close still arrives; after it, nothing happens", async () => {
    const { url, opened, closed } = await start();
    const socket = await join(url);
    const frames: number[] = [];
    socket.on("message", (data) => frames.push(decodeServerFrame(data as Buffer).length));
    opened[0]?.send(leaderMessage(1));
    opened[0]?.close(4_000, "enough");
    opened[0]?.send(leaderMessage(2));
    assert.deepEqual(await closing(socket), { code: 4_000, reason: "enough" });
    assert.deepEqual(frames, [1]);
    await until(() => closed.length === 1, "onClosed");
    opened[0]?.send(leaderMessage(3));
    opened[0]?.close(4_000, "again");
    await sleep(20);
    assert.equal(closed.length, 1, "said once");
  });

  test("refuses foreign web origins and host names, and lets listed ones in", async () => {
    const { url, port, rejected, opened } = await start();
    await assert.rejects(join(url, { origin: "http://evil.example" }), /403/);
    await assert.rejects(join(url, { origin: "null" }), /403/);
    await assert.rejects(join(url, { headers: { host: `rebound.example:${port}` } }), /421/);
    assert.deepEqual(rejected, ["origin", "origin", "host"]);
    await join(url, { origin: "https://tool.example" });
    await join(url, { headers: { host: `localhost:${port}` } });
    await join(url, { headers: { host: "locks.example" } });
    assert.equal(opened.length, 3);
  });

  test("tells clients to come back while the node isn't ready, and when it is full", async () => {
    const early = await start({}, false);
    await assert.rejects(join(early.url), /503/);
    assert.deepEqual(early.rejected, ["not_ready"]);
    const { url, rejected, opened, closed } = await start({ connectionsMax: 2 });
    const first = await join(url);
    await join(url);
    await assert.rejects(join(url), /503/);
    assert.deepEqual(rejected, ["connection_cap"]);
    first.terminate();
    await until(() => closed.length === 1, "room again");
    await join(url);
    assert.equal(opened.length, 3);
  });

  test("caps sockets that have not finished their handshake, and times them out", async () => {
    const { port, url, rejected } = await start({ pendingUpgradesMax: 3, headMs: 400 });
    const idle = await Promise.all([rawSocket(port), rawSocket(port), rawSocket(port)]);
    idle[0].write("GET / HTTP/1.1\r\nHost: localhost\r\nUpgr");
    await sleep(20);
    const extra = await rawSocket(port);
    await once(extra, "close");
    assert.deepEqual(rejected, ["pending_cap"]);
    for (const socket of idle) socket.resume();
    await until(() => idle.every((socket) => socket.closed), "they are timed out");
    await sleep(50);
    for (let n = 0; n < 6; n += 1) await join(url);
    assert.equal(rejected.length, 1, "who has finished its handshake is pending no more");
  });

  test("who has asked something over HTTP and stays is pending no more", async () => {
    const { port, url, rejected } = await start({ pendingUpgradesMax: 3 });
    for (let n = 0; n < 5; n += 1) {
      const socket = await rawSocket(port);
      socket.write("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n");
      await once(socket, "data");
    }
    await join(url);
    assert.deepEqual(rejected, []);
  });

  test("a reset in mid-handshake ends nothing", async () => {
    const { port, url, listener } = await start();
    const lines = [
      "GET / HTTP/1.1",
      "Host: localhost",
      "Connection: Upgrade",
      "Upgrade: websocket",
      "Sec-WebSocket-Version: 13",
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    ];
    for (let n = 0; n < 60; n += 1) {
      const socket = await rawSocket(port);
      // Taken, and refused: then the answer meets a socket that is gone.
      const origin = n % 3 === 0 ? ["Origin: http://evil.example"] : [];
      socket.write(`${[...lines, ...origin].join("\r\n")}\r\n\r\n`);
      if (n % 2 === 0) socket.resetAndDestroy();
      else setImmediate(() => socket.resetAndDestroy());
    }
    await until(() => listener.figures().connections === 0, "all are gone");
    await join(url);
  });

  test("who says no hello in time is sent away; who has said it stays", async () => {
    const { url, rejected } = await start({ helloMs: 400 });
    const silent = await join(url);
    const chatty = await join(url);
    const polite = await join(url);
    polite.send(encodeClientFrame([hello]));
    chatty.send(encodeClientFrame([{ kind: "keepalive", session: 1, number: 1 }]));
    const codes = [(await closing(silent))?.code, (await closing(chatty))?.code];
    assert.deepEqual(codes, [1008, 1008]);
    await sleep(450);
    assert.equal(polite.readyState, WebSocket.OPEN);
    assert.deepEqual(rejected, ["hello_timeout", "hello_timeout"]);
  });

  test("a frame that can't be decoded closes with 1007 and a code, and echoes nothing", async () => {
    const { url, rejected, messages, log } = await start();
    const secret = "do-not-repeat-me";
    const socket = await join(url);
    socket.send(Buffer.concat([Buffer.from([0x91, 0xa0 + secret.length]), Buffer.from(secret)]));
    socket.send(encodeClientFrame([hello]));
    const end = await closing(socket);
    assert.equal(end?.code, 1007);
    assert.match(end.reason, /^[a-z_]+$/);
    await sleep(20);
    assert.deepEqual([rejected, messages], [["bad_frame"], []], "what follows is not read");
    assert.ok(!JSON.stringify(log.lines).includes(secret));
    const texter = await join(url);
    texter.send("hello");
    assert.equal((await closing(texter))?.code, 1003);
    const giant = await join(url);
    giant.send(new Uint8Array(limits.clientFrameBytesMax + 1));
    assert.equal((await closing(giant))?.code, 1009);
  });

  test("a reader that stops is marked, then cut off, while others go on", async () => {
    const { url, opened, closed, rejected, log, listener } = await start();
    const stuck = await join(url);
    const reader = await join(url);
    let read = 0;
    reader.on("message", (data) => (read += decodeServerFrame(data as Buffer).length));
    stuck.pause();
    const [slow, quick] = opened;
    const perTurn = 2_000;
    let most = 0;
    for (let turn = 0; turn < 200 && closed.length === 0; turn += 1) {
      for (let n = 0; n < perTurn; n += 1) slow?.send(leaderMessage(n, 200));
      quick?.send(leaderMessage(turn));
      await sleep(1);
      most = Math.max(most, listener.figures().bufferedBytes);
    }
    await until(() => closed.length === 1, "cut off");
    assert.deepEqual([closed[0], rejected], [slow, ["slow_reader"]]);
    assert.ok(most <= limits.clientBufferedBytesMax, `${most} bytes waited`);
    assert.deepEqual(
      log.lines.filter(({ level }) => level === "warn").map(({ text }) => text),
      ["client reads slowly", "client reads too slowly: cut off"],
    );
    await until(() => read > 0, "the other has its messages");
    assert.equal(reader.readyState, WebSocket.OPEN);
  });

  test("a connection that is dead without a word is found by pings; a living silent one stays", async () => {
    const { url, closed, opened } = await start({ pingMs: 60 });
    const living = await join(url);
    const dead = await join(url, { autoPong: false });
    await until(() => closed.length === 1, "the dead one is closed");
    assert.equal(closed[0], opened[1]);
    assert.equal(living.readyState, WebSocket.OPEN);
    assert.notEqual(dead.readyState, WebSocket.OPEN);
  });

  test("a flood of tiny fragments is cut off", async () => {
    const { url } = await start();
    const socket = await join(url);
    for (let n = 0; n < 200; n += 1) socket.send(Buffer.from([1]), { fin: false });
    assert.equal((await closing(socket))?.code, 1008);
  });

  test("close() sends clients elsewhere and doesn't wait for those who don't answer", async () => {
    const { listener, url, closed } = await start();
    const polite = await join(url);
    const stuck = await join(url);
    stuck.pause();
    const beganMs = performance.now();
    await listener.close();
    const tookMs = performance.now() - beganMs;
    assert.equal((await closing(polite))?.code, 1001);
    assert.ok(tookMs < 1_500, `took ${tookMs} ms`);
    await until(() => closed.length === 2, "both are told as closed");
    await assert.rejects(join(url), /ECONNREFUSED/);
  });
});
