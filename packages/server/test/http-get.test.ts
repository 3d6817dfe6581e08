/** Questions to ports where nobody answers as a node should. */
import { strict as assert } from "node:assert";
import { execFile } from "node:child_process";
import { createServer as createHttpServer } from "node:http";
import type { RequestListener } from "node:http";
import { createServer } from "node:net";
import type { AddressInfo, Server, Socket } from "node:net";
import { after, describe, test } from "node:test";
import { promisify } from "node:util";
import { GetError, getBytes, getJson } from "../src/http-get.js";
import type { GetOptions } from "../src/http-get.js";
import { askForCluster } from "../src/joining.js";
import { sleep } from "./helpers.js";

const servers: Server[] = [];
const sockets = new Set<Socket>();
after(() => {
  for (const server of servers) server.close();
  for (const socket of sockets) socket.destroy();
});

async function listening(server: Server, port = 0): Promise<string> {
  server.on("connection", (socket) => sockets.add(socket));
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  });
  servers.push(server);
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const serve = (listener: RequestListener): Promise<string> => listening(createHttpServer(listener));
/** As a port forwarder without a backend does. */
const hangingUp = (): Promise<string> => listening(createServer((socket) => socket.destroy()));
const hungUp = "the connection was closed without an answer";
const silent = (): Promise<string> => listening(createServer(() => undefined));

async function problemAt(endpoint: string, options: GetOptions = { timeoutMs: 10_000 }): Promise<unknown> {
  const error: unknown = await getJson(endpoint, "/v1/x", options).catch((problem: unknown) => problem);
  assert.ok(error instanceof GetError, String(error));
  return [error.kind, error.message, error.code];
}

describe("a question to a node", () => {
  test("gets the object, and asks for the path", async () => {
    const endpoint = await serve((request, response) => response.end(JSON.stringify({ asked: request.url })));
    assert.deepEqual(await getJson(endpoint, "/v1/x", { timeoutMs: 10_000 }), { asked: "/v1/x" });
  });

  test("says why there is no answer", async () => {
    const detail = "the cluster is not formed yet";
    const cases: readonly (readonly [RequestListener, unknown])[] = [
      [(_, response) => response.end("[1"), ["foreign", "it answers with something that is no JSON object", null]],
      [(_, response) => response.writeHead(404).end("nothing"), ["foreign", "HTTP status 404", null]],
      [(_, response) => response.writeHead(302, { location: "/" }).end(), ["foreign", "HTTP status 302", null]],
      [(_, response) => response.writeHead(503).end(JSON.stringify({ detail })), ["refused", detail, null]],
      [(_, response) => response.writeHead(503).end('{"detail":"d","code":"c"}'), ["refused", "d", "c"]],
      [
        (_, response) => response.end(Buffer.alloc(4 * 1_048_576 + 1, "x")),
        ["foreign", "it answers with more than 4194304 bytes", null],
      ],
      [
        (_, response) => response.writeHead(200, { "content-length": 9 }).write("{", () => response.destroy()),
        ["silent", "the connection broke in the midst of the answer", null],
      ],
    ];
    for (const [listener, expected] of cases) assert.deepEqual(await problemAt(await serve(listener)), expected);
    assert.deepEqual(await problemAt(await hangingUp()), ["silent", hungUp, null]);
    assert.match(String(await problemAt("127.0.0.1:1")), /^silent,connect ECONNREFUSED/);
    assert.match(String(await problemAt("127.0.0.1:99999")), /^silent,Invalid URL/);
  });

  test("ends in time, also in the midst of the answer, and when it is told to", async () => {
    const late = ["silent", "no answer within 50 ms", null];
    assert.deepEqual(await problemAt(await silent(), { timeoutMs: 50 }), late);
    const halting = await serve((_, response) => response.writeHead(200).write("{"));
    assert.deepEqual(await problemAt(halting, { timeoutMs: 50 }), late);
    const stop = new AbortController();
    setTimeout(() => stop.abort(), 20);
    const givenUp = ["silent", "it was given up", null];
    assert.deepEqual(await problemAt(await silent(), { timeoutMs: 10_000, stop: stop.signal }), givenUp);
    assert.deepEqual(await problemAt(await silent(), { timeoutMs: 10_000, stop: stop.signal }), givenUp);
  });

  test("goes to ports that browsers don't speak to", async () => {
    const answer: RequestListener = (_, response) => response.end('{"is":"there"}');
    let endpoint: string | null = null;
    // Some other program of this machine may have one of them.
    for (const port of [6667, 6668, 6669, 6666, 6665, 10080, 6000, 5061]) {
      endpoint ??= await listening(createHttpServer(answer), port).catch(() => null);
    }
    assert.ok(endpoint !== null);
    assert.deepEqual(await getJson(endpoint, "/v1/x", { timeoutMs: 10_000 }), { is: "there" });
    await assert.rejects(askForCluster(endpoint, new AbortController().signal), /is no node of a cluster/);
  });

  test("for bytes waits for the node, and not for whoever takes them", async () => {
    const endpoint = await serve((_, response) =>
      response.write("one", () => setTimeout(() => response.write("two"), 40)),
    );
    const taken: string[] = [];
    const take = async (): Promise<void> => {
      for await (const bytes of getBytes(endpoint, "/", { timeoutMs: 400 })) {
        taken.push(Buffer.from(bytes).toString());
        await sleep(500);
      }
    };
    await assert.rejects(take(), { kind: "silent", message: "nothing came for 400 ms" });
    assert.equal(taken.join(""), "onetwo");
  });
});

/** What a process prints that does nothing but ask. */
async function asking(module: string, call: string): Promise<string> {
  const script = `const m = await import(${JSON.stringify(new URL(`../src/${module}.js`, import.meta.url).href)});
    await ${call}.catch((error) => console.log(error.message));`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", script]);
  return stdout.trim();
}

test("a process that only asks doesn't end before it knows", async () => {
  for (const [endpoint, problem] of [
    [await hangingUp(), hungUp],
    [await silent(), "no answer within 1000 ms"],
  ] as const) {
    assert.equal(await asking("http-get", `m.getJson("${endpoint}", "/", { timeoutMs: 1000 })`), problem);
  }
  const signal = "new AbortController().signal";
  assert.equal(await asking("joining", `m.askForCluster("${await hangingUp()}", ${signal})`), hungUp);
});
