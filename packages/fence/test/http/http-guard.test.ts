import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";

import { fileGuard } from "../../src/files.js";
import { fencedFetch, httpFence, httpGuard, memoryRegister, problemOf } from "../../src/http.js";
import type { HttpFenceOptions, HttpGuardOptions, SequencerSource } from "../../src/http.js";
import {
  Guard,
  KeysUnavailableError,
  SequencerError,
  StaleTokenError,
  UnknownOutcomeError,
  sequencerKeys,
} from "../../src/index.js";
import { newSigner } from "../signing.js";

const signer = newSigner();
const keys = sequencerKeys({ keys: [signer.publicKey] });

function lock(token: number, name = "doc:42"): SequencerSource {
  return { sequencer: async () => signer.seal({ name, mode: "exclusive", slot: null, token }) };
}

type Listener = (request: IncomingMessage, response: ServerResponse) => unknown;

async function serve<T>(listener: Listener, body: (url: string) => Promise<T>): Promise<T> {
  const server = createServer((request, response) => void listener(request, response)).listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    return await body(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

const resourceOf = (): string => "doc:42";

test("fences may be kept by any guard that reads, and outlive the process there", async () => {
  const directory = await mkdtemp(path.join(tmpdir(), "holdfast-http-"));
  try {
    const listener = (): Listener =>
      httpGuard({ keys, fences: fileGuard({ directory }) }).node(resourceOf, async (_request, response) => {
        response.end("done");
      });
    await serve(listener(), async (url) => assert.equal(await (await fencedFetch(lock(34), url)).text(), "done"));
    await serve(listener(), async (url) => {
      await assert.rejects(
        fencedFetch(lock(33), url),
        (error) => error instanceof StaleTokenError && error.highest === 34,
      );
      assert.equal((await fencedFetch(lock(34), url)).status, 200);
    });
  } finally {
    await rm(directory, { recursive: true });
  }
});

test("a register that fails stops the request before its handler", async () => {
  const cause = new UnknownOutcomeError("doc:42", null, new Error("reset"), false);
  let runs = 0;
  const listener = httpGuard({ keys, fences: { read: () => Promise.reject(cause) } }).node(resourceOf, async () => {
    runs += 1;
  });
  const caught: unknown[] = [];
  const safe: Listener = (request, response) => {
    listener(request, response).catch((error: unknown) => {
      caught.push(error);
      response.writeHead(500).end();
    });
  };
  await serve(safe, async (url) => assert.equal((await fencedFetch(lock(34), url)).status, 500));
  assert.deepEqual([caught, runs], [[cause], 0]);
});

test("keys that can't be had are 503, and an error of their own kind comes out", async () => {
  const rows: readonly (readonly [Error, number])[] = [
    [new KeysUnavailableError(new Error("refused")), 503],
    [new SequencerError("unknown_key", "0".repeat(16), "of a key that isn't known"), 403],
    [new SequencerError("malformed", null, "is no text"), 400],
    [new Error("a bug"), 500],
  ];
  for (const [error, status] of rows) {
    const fence = httpFence({ keys: { verify: () => Promise.reject(error) } });
    const listener = fence.node(resourceOf, () => assert.fail("not to be called"));
    const safe: Listener = (request, response) => {
      listener(request, response).catch(() => response.writeHead(500).end());
    };
    await serve(safe, async (url) => {
      const response = await fencedFetch(lock(34), url);
      assert.equal(response.status, status);
      assert.equal(response.headers.get("retry-after"), status === 503 ? "1" : null);
    });
  }
});

test("what goes wrong after the answer has begun cuts it off, so that half of it doesn't pass for the whole", async () => {
  const listener = httpGuard({ keys, fences: memoryRegister() }).node(resourceOf, async (_request, response) => {
    response.writeHead(200, { "content-length": 10 });
    response.write("half");
    throw new StaleTokenError("doc:42", 34, 35);
  });
  await serve(listener, async (url) => {
    const response = await fencedFetch(lock(34), url).catch((error: unknown) => error);
    if (response instanceof Response) await assert.rejects(response.text());
    else assert.ok(response instanceof TypeError, String(response));
  });
});

test("the name of a lock that isn't known beforehand can be made of what came", async () => {
  const listener = httpFence({ keys }).node(
    (_request, fence) => (fence.name === "pool" && fence.mode === "slot" ? fence.resource : "pool"),
    (request, response) => response.end(`${request.fence.resource} ${request.fence.slot}`),
  );
  const slot = { sequencer: async () => signer.seal({ name: "pool", mode: "slot", slot: 3, token: 7 }) };
  await serve(listener, async (url) => {
    assert.equal(await (await fencedFetch(slot, url)).text(), "pool#3 3");
    assert.equal((await fencedFetch(lock(7), url)).status, 403);
  });
  const odd = httpFence({ keys }).node(
    () => undefined as unknown as string,
    () => assert.fail("not to be called"),
  );
  const caught: unknown[] = [];
  const safe: Listener = (request, response) => {
    odd(request, response).catch((error: unknown) => {
      caught.push(error);
      response.end();
    });
  };
  await serve(safe, (url) => fencedFetch(lock(7), url));
  assert.equal((caught[0] as { argument?: string }).argument, "resourceOf");
});

test("fencedFetch adds one header, and knows a stale token from any other 412", async () => {
  let answer: (headers: Record<string, string>) => Response | null = () => null;
  const seen: (string | undefined)[][] = [];
  const listener: Listener = (request, response) => {
    const { "holdfast-sequencer": sequencer, "x-mine": mine } = request.headers;
    seen.push([request.method, sequencer as string | undefined, mine as string | undefined]);
    const made = answer({}) ?? new Response("fine");
    void made.text().then((body) => response.writeHead(made.status, Object.fromEntries(made.headers)).end(body));
  };
  const stale = problemOf(new StaleTokenError("doc:42", 33, 34));
  await serve(listener, async (url) => {
    await fencedFetch(lock(33), url, { method: "PUT", body: "x", headers: { "X-Mine": "a" } });
    await fencedFetch(lock(33), new Request(url, { headers: { "X-Mine": "b", "Holdfast-Sequencer": "old" } }));
    const sequencer = await lock(33).sequencer();
    assert.deepEqual(seen, [
      ["PUT", sequencer, "a"],
      ["GET", sequencer, "b"],
    ]);
    const json = { "content-type": "application/json" };
    const problem = { "content-type": "application/problem+json; charset=utf-8" };
    const others: readonly (readonly [string, Record<string, string>])[] = [
      ["If-Match failed", {}],
      [stale?.body ?? "", json],
      ["{", problem],
      ['{"code":"other"}', problem],
      ['{"code":"stale_token","resource":"a","presented":1.5,"highest":2}', problem],
      ['{"code":"stale_token","resource":"a","presented":1,"highest":"2"}', problem],
    ];
    for (const [body, headers] of others) {
      answer = () => new Response(body, { status: 412, headers });
      const response = await fencedFetch(lock(33), url);
      assert.deepEqual([response.status, await response.text()], [412, body]);
    }
    answer = () => new Response(stale?.body ?? "", { status: 412, headers: problem });
    await assert.rejects(
      fencedFetch(lock(33), url),
      (error) => error instanceof StaleTokenError && error.highest === 34,
    );
    answer = () => new Response(null, { status: 307, headers: { location: url } });
    await assert.rejects(fencedFetch(lock(33), url), TypeError, "the header isn't carried on");
    const followed = await fencedFetch(lock(33), url, { redirect: "manual" });
    assert.equal(followed.status, 307);
  });
  const lost = new Error("the lock was lost");
  await assert.rejects(fencedFetch({ sequencer: () => Promise.reject(lost) }, "http://127.0.0.1:9/"), lost);
  await assert.rejects(fencedFetch({} as SequencerSource, "http://127.0.0.1:9/"), { argument: "lock" });
});

test("the register in memory is one for any Guard", async () => {
  const guard = new Guard<string>(memoryRegister<string>());
  await guard.write({ resource: "a", token: 5 }, "five");
  await Promise.all(
    [6, 7, 8].map((token) => guard.update({ resource: "a", token }, (text) => `${text}+`).catch(() => {})),
  );
  await assert.rejects(guard.write({ resource: "a", token: 7 }, "late"), StaleTokenError);
  assert.match((await guard.read({ resource: "a", token: 8 })) ?? "", /^five\++$/);
});

test("what asks for no answer of ours is none of ours", () => {
  for (const error of [null, undefined, "stale_token", new Error("x"), { code: "stale_token" }]) {
    assert.equal(problemOf(error), null);
  }
});

test("odd arguments are refused by name", () => {
  const fences = memoryRegister();
  const guards: readonly (readonly [string, object])[] = [
    ["options.keys", { fences }],
    ["options.keys", { fences, keys: {} }],
    ["options.fences", { keys }],
    ["options.fences", { keys, fences: {} }],
    ["options.waitingMax", { keys, fences, waitingMax: -1 }],
    ["options.waitingMax", { keys, fences, waitingMax: 1.5 }],
    ["options.waitingMax", { keys, fences, waitingMax: 10_001 }],
    ["options.onStale", { keys, fences, onStale: 1 }],
    ["options.key", { keys, fences, key: 1 }],
  ];
  for (const [argument, options] of guards) assert.throws(() => httpGuard(options as HttpGuardOptions), { argument });
  assert.throws(() => httpFence({} as HttpFenceOptions), { argument: "options.keys" });
  assert.throws(() => httpFence({ keys, fences } as HttpFenceOptions), { argument: "options.fences" });
  const guard = httpGuard({ keys, fences });
  const fence = httpFence({ keys });
  const odd = 5 as never;
  const makers = guard as unknown as Record<string, (resourceOf: unknown, handler: unknown) => unknown>;
  for (const name of ["node", "express", "fastify", "hono"]) {
    assert.throws(() => makers[name]?.(odd, async () => odd), { argument: "resourceOf" }, name);
    assert.throws(() => makers[name]?.(resourceOf, odd), { argument: "handler" }, name);
  }
  assert.throws(() => fence.node(resourceOf, odd), { argument: "handler" });
  assert.throws(() => fence.express(odd), { argument: "resourceOf" });
  assert.throws(() => fence.fastify(odd), { argument: "resourceOf" });
  assert.throws(() => fence.hono(odd), { argument: "resourceOf" });
});
