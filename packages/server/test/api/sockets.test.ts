/** The HTTP side of the client port at its sockets: limits, leavings at any moment, slow readers, garbage, other web pages. */
import assert from "node:assert/strict";
import { once } from "node:events";
import type { Socket } from "node:net";
import { afterEach, describe, it } from "node:test";
import type { ServerMessage } from "@holdfast/wire";
import { until } from "../helpers.js";
import { endAll, rawSocket, start } from "../listener-harness.js";
import type { Recorded } from "../listener-harness.js";
import { ask, Judge } from "./document.js";

afterEach(endAll);

const judge = new Judge();
const credential = `1.${"0".repeat(32)}`;

/** A port whose gateway takes everything and says nothing. */
async function silent(http: { requestsMax?: number; bufferedBytesMax?: number } = {}, more = {}): Promise<Recorded> {
  const doors = { origins: ["https://tool.example"], hosts: ["locks.example"], isLoopbackOnly: true };
  return start({ http: { ...doors, requestsMax: 100, bufferedBytesMax: 1_000_000, ...http }, ...more });
}

function requestText(method: string, path: string, body = "", more = ""): string {
  const head = `${method} ${path} HTTP/1.1\r\nHost: localhost\r\nHoldfast-Session: ${credential}\r\n${more}`;
  const content = body === "" ? "" : `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n`;
  return `${head}${content}\r\n${body}`;
}

const acquire = (request: number): string =>
  requestText("POST", "/v1/acquire", JSON.stringify({ request, names: ["a"] }));

/** All that comes until it closes. */
function textOf(socket: Socket): () => string {
  let text = "";
  socket.on("data", (data: Buffer) => (text += data.toString()));
  return () => text;
}

const openAt = ({ opened, closed }: Recorded): number => opened.length - closed.length;

describe("requests that wait", () => {
  it("have a limit, that health has no part in; who leaves makes room", async () => {
    const port = await silent({ requestsMax: 2 });
    const endpoint = `127.0.0.1:${port.port}`;
    const sockets = [await rawSocket(port.port), await rawSocket(port.port)];
    for (const [at, socket] of sockets.entries()) socket.write(requestText("GET", `/v1/locks/${at}`));
    await until(() => openAt(port) === 2, "both wait");
    const refused = await ask(endpoint, "GET", "/v1/locks");
    judge.check("GET", "/v1/locks", refused);
    assert.match(refused.text, /"code":"overloaded"/);
    assert.equal((await ask(endpoint, "GET", "/livez")).status, 200);
    assert.deepEqual(port.rejected, ["connection_cap"]);
    sockets[0]?.destroy();
    await until(() => openAt(port) === 1, "its question is dropped");
    const third = await rawSocket(port.port);
    third.write(requestText("GET", "/v1/locks"));
    await until(() => openAt(port) === 2, "there is room");
  });

  it("on one socket are few", async () => {
    const port = await silent();
    const socket = await rawSocket(port.port);
    socket.resume();
    for (let request = 0; request < 4; request += 1) socket.write(requestText("GET", "/v1/locks"));
    await until(() => openAt(port) === 4, "four wait");
    socket.write(requestText("GET", "/v1/locks"));
    await once(socket, "close");
    await until(() => openAt(port) === 0, "nothing of it stays");
    assert.equal(port.opened.length, 4);
  });

  it("may be left at any moment", async () => {
    const port = await silent();
    const wholes = [
      acquire(1),
      requestText("GET", "/v1/watch?prefix="),
      requestText("GET", "/v1/locks/a"),
      requestText("DELETE", "/v1/session"),
      requestText("POST", "/v1/session/renew"),
      requestText("POST", "/v1/sessions", "{}"),
    ];
    const cuts = wholes.flatMap((whole) => [whole, whole.slice(0, -1), whole.slice(0, 40), whole + whole]);
    for (const [at, text] of cuts.entries()) {
      const socket = await rawSocket(port.port);
      socket.write(text);
      if (at % 3 === 0) socket.end();
      else if (at % 3 === 1) setImmediate(() => socket.resetAndDestroy());
      else setTimeout(() => socket.destroy(), 5);
    }
    await until(() => port.opened.length >= 6, "some have come through");
    // What is withdrawn from a gateway that says nothing stays until the node stops.
    await until(() => openAt(port) <= 1, "nothing else stays");
    await port.listener.close();
    assert.equal(openAt(port), 0);
  });

  it("are answered when the node stops", async () => {
    const port = await silent();
    const socket = await rawSocket(port.port);
    const text = textOf(socket);
    socket.write(acquire(1));
    await until(() => openAt(port) === 1, "it waits");
    await port.listener.close();
    await until(() => socket.closed, "it is closed");
    assert.match(text(), /^HTTP\/1\.1 503 [^]*"code":"not_ready"/);
    assert.equal(openAt(port), 0);
  });

  it("have to wait until the node is open", async () => {
    const { port } = await start({}, false);
    const early = await ask(`127.0.0.1:${port}`, "GET", "/v1/locks");
    judge.check("GET", "/v1/locks", early);
    assert.match(early.text, /"code":"not_ready"/);
  });
});

describe("streams of events", () => {
  it("of a reader that stops are cut off; what waits for it is bounded", async () => {
    const bufferedBytesMax = 300_000;
    const port = await silent({ bufferedBytesMax });
    const socket = await rawSocket(port.port);
    socket.pause();
    socket.write(requestText("GET", "/v1/watch?prefix="));
    await until(() => port.opened.length === 1, "it is there");
    const [connection] = port.opened;
    const change = { name: "n".repeat(500), change: "granted", token: 1, slot: null } as const;
    connection?.send({ kind: "watching", id: 1, index: 1, isGap: true });
    for (let index = 2; port.closed.length === 0; index += 1) {
      const message: ServerMessage = {
        kind: "changes",
        id: 1,
        index,
        changes: Array.from({ length: 50 }, () => change),
      };
      connection?.send(message);
      await new Promise((resolve) => setImmediate(resolve));
      assert.ok(index < 10_000, "it is cut off some time");
    }
    assert.deepEqual(port.rejected, ["slow_reader"]);
    socket.resume();
    await until(() => socket.closed, "it learns of it");
  });

  it("answer what a browser asks first, for pages that are listed", async () => {
    const { port } = await silent();
    const headers = {
      origin: "https://tool.example",
      "access-control-request-method": "POST",
      "access-control-request-headers": "holdfast-session, content-type",
    };
    const preflight = await ask(`127.0.0.1:${port}`, "OPTIONS", "/v1/acquire", { headers });
    assert.deepEqual([preflight.status, preflight.text], [204, ""]);
    assert.equal(preflight.headers["access-control-allow-origin"], "https://tool.example");
    assert.equal(preflight.headers["access-control-allow-methods"], "POST, OPTIONS");
    assert.match(preflight.headers["access-control-allow-headers"] ?? "", /content-type, holdfast-session/);
    const evil = { ...headers, origin: "https://evil.example" };
    const refused = await ask(`127.0.0.1:${port}`, "OPTIONS", "/v1/acquire", { headers: evil });
    assert.deepEqual([refused.status, refused.headers["access-control-allow-origin"]], [403, undefined]);
    const head = await ask(`127.0.0.1:${port}`, "HEAD", "/v1/watch?prefix=");
    assert.deepEqual([head.status, head.headers.allow], [405, "GET, OPTIONS"]);
  });
});

const h2cText = requestText("GET", "/v1/locks", "", "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n");

describe("what is no request", () => {
  const garbage: readonly [string, string, RegExp][] = [
    ["no HTTP at all", "SSH-2.0-x\r\n\r\n", /^HTTP\/1\.1 400 [^]*"argument":"request"/],
    ["a head without end", `GET / HTTP/1.1\r\nX: ${"x".repeat(20_000)}`, /^HTTP\/1\.1 431 [^]*"argument":"head"/],
    ["a body that doesn't come", `${acquire(1).slice(0, -3)}`, /^HTTP\/1\.1 408 [^]*"argument":"request"/],
    ["HTTP/2 by upgrade", h2cText, /^HTTP\/1\.1 400 [^]*"argument":"Upgrade"/],
    ["no Host", "GET /livez HTTP/1.1\r\n\r\n", /^HTTP\/1\.1 400 /],
  ];
  for (const [name, bytes, expected] of garbage) {
    it(`${name} is answered, and closed`, async () => {
      const { port } = await silent({}, { headMs: 300 });
      const socket = await rawSocket(port);
      const text = textOf(socket);
      socket.write(bytes);
      await until(() => socket.closed, "it is closed");
      assert.match(text(), expected);
    });
  }

  it("in the midst of an answer is no part of it", async () => {
    const port = await silent();
    const socket = await rawSocket(port.port);
    const text = textOf(socket);
    socket.write(requestText("GET", "/v1/watch?name=a"));
    await until(() => port.opened.length === 1, "it is there");
    port.opened[0]?.send({ kind: "watching", id: 1, index: 1, isGap: true });
    await until(() => text().includes("event: gap"), "it has begun");
    socket.write("\u0000\u0001 garbage\r\n\r\n");
    await until(() => socket.closed, "it is closed");
    assert.doesNotMatch(text(), /400/);
    await until(() => openAt(port) === 0, "its watch is over");
  });
});
