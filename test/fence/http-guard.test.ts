/** The guard of HTTP handlers on the real frameworks, over real sockets. The common promises are in http-store.test.ts. */
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { Guard, StaleTokenError, prometheusFenceMetrics, sequencerKeys } from "@holdfast/fence";
import type { PrometheusFenceMetrics, StaleReport } from "@holdfast/fence";
import { fencedFetch, httpFence, httpGuard, memoryRegister } from "@holdfast/fence/http";
import { until } from "../harness/until.js";
import { skipWithoutDriver } from "./drivers.js";
import { frameworks } from "./http-frameworks.js";
import type { App, FrameworkName, Work } from "./http-frameworks.js";
import { newSigner } from "./signer.js";
import type { Signer } from "./signer.js";

interface Parts {
  app: App;
  signer: Signer;
  work: Work;
  /** How many requests have been verified. */
  verified: number;
  reports: StaleReport[];
  metrics: PrometheusFenceMetrics;
}

let lastId = 0;
function freshId(): string {
  lastId += 1;
  return `n${lastId}`;
}

for (const name of Object.keys(frameworks) as FrameworkName[]) {
  const drivers = { "node:http": [], Express: ["express"], Fastify: ["fastify"], Hono: ["hono", "@hono/node-server"] };
  const skip = drivers[name].map(skipWithoutDriver).find((reason) => reason !== false) ?? false;
  describe(`HTTP guard on ${name}`, { skip, timeout: 120_000 }, () => {
    const parts = useApp(name);
    refusalTests(parts);
    sequencerTests(parts);
    orderTests(parts);
    waitingTests(parts);
    failureTests(parts);
    hangUpTests(parts);
    fenceTests(parts);
  });
}

function useApp(name: FrameworkName): Parts {
  const parts = { reports: [], metrics: prometheusFenceMetrics() } as unknown as Parts;
  before(async () => {
    parts.signer = newSigner();
    const known = sequencerKeys({ keys: [parts.signer.publicKey] });
    const keys = {
      verify: async (text: string) => {
        const fence = await known.verify(text);
        parts.verified += 1;
        return fence;
      },
    };
    const guard = httpGuard({
      keys,
      fences: memoryRegister(),
      waitingMax: 40,
      resourceClass: "docs",
      metrics: parts.metrics,
      onStale: (report) => parts.reports.push(report),
    });
    parts.app = await frameworks[name]({ guard, fence: httpFence({ keys }), work: (request) => parts.work(request) });
  });
  beforeEach(() => {
    parts.verified = 0;
    parts.reports.length = 0;
    parts.work = async ({ body }) => body;
  });
  after(() => parts.app?.stop());
  return parts;
}

/** As a holder of this token does it. */
function put(parts: Parts, id: string, token: number, init: RequestInit = {}, form = "guarded"): Promise<Response> {
  const lock = parts.signer.lock(`doc:${id}`, token);
  return fencedFetch(lock, `${parts.app.url}/${form}/${id}`, { method: "PUT", body: "text", ...init });
}

/** A door that is closed at first. */
function gate(): { readonly passed: Promise<void>; open(): void } {
  let open = (): void => {};
  const passed = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { passed, open };
}

/** Requests have been seen; what they could do by now they have done. */
async function arrived(parts: Parts, count: number): Promise<void> {
  await until(`${count} requests have come`, () => parts.verified >= count);
  for (let each = 0; each < 20; each += 1) await turn();
}

function refusalTests(parts: Parts): void {
  test("a stale one is refused with 412, nothing of it runs, and it is reported and counted", async () => {
    const id = freshId();
    const seen: string[] = [];
    parts.work = async ({ fence, body }) => {
      seen.push(`${fence.token} ${body}`);
      return "done";
    };
    assert.equal(await (await put(parts, id, 34)).text(), "done");
    await assert.rejects(
      put(parts, id, 33),
      (error) =>
        error instanceof StaleTokenError &&
        error.resource === `doc:${id}` &&
        error.presented === 33 &&
        error.highest === 34,
    );
    await put(parts, id, 34);
    assert.deepEqual(seen, ["34 text", "34 text"]);
    assert.deepEqual(parts.reports, [
      { guard: "http", resource: `doc:${id}`, resourceClass: "docs", holder: "127.0.0.1", presented: 33, highest: 34 },
    ]);
    assert.match(parts.metrics.prometheusText(), /fence_rejected_total\{guard="http",class="docs"\} [1-9]/);
    const raw = await fetch(`${parts.app.url}/guarded/${id}`, {
      method: "PUT",
      headers: { "Holdfast-Sequencer": parts.signer.seal(`doc:${id}`, 33) },
    });
    const body = (await raw.json()) as Record<string, unknown>;
    assert.match(raw.headers.get("content-type") ?? "", /^application\/problem\+json/);
    assert.deepEqual(body, {
      type: "about:blank",
      title: "Precondition Failed",
      status: 412,
      code: "stale_token",
      detail: `token 33 for doc:${id} is stale: token 34 has been accepted`,
      retryable: false,
      resource: `doc:${id}`,
      presented: 33,
      highest: 34,
    });
  });
}

function sequencerTests(parts: Parts): void {
  test("without a good sequencer of this lock nothing runs and no fence is raised", async () => {
    const id = freshId();
    const stranger = newSigner();
    let runs = 0;
    parts.work = async () => {
      runs += 1;
      return "";
    };
    const good = parts.signer.seal(`doc:${id}`, 900);
    const [before, after] = [good.slice(0, -86), good.slice(-86)];
    const rows: readonly (readonly [number, string, string | undefined])[] = [
      [401, "no_sequencer", undefined],
      [400, "bad_sequencer", "900"],
      [400, "bad_sequencer", `${good}, ${good}`],
      [400, "bad_sequencer", "x".repeat(8_000)],
      [403, "bad_sequencer", `${before.replace(".900.", ".901.")}${after}`],
      [403, "bad_sequencer", stranger.seal(`doc:${id}`, 900)],
      [403, "wrong_resource", parts.signer.seal("doc:other", 900)],
      [403, "wrong_resource", parts.signer.seal(`doc:${id}#0`, 900)],
    ];
    for (const form of ["guarded", "fenced"]) {
      for (const [status, code, sequencer] of rows) {
        const headers: Record<string, string> = sequencer === undefined ? {} : { "Holdfast-Sequencer": sequencer };
        const response = await fetch(`${parts.app.url}/${form}/${id}`, { method: "PUT", body: "text", headers });
        const body = (await response.json()) as Record<string, unknown>;
        assert.deepEqual(
          [response.status, body["status"], body["code"]],
          [status, status, code],
          `${form} ${sequencer}`,
        );
        assert.match(response.headers.get("content-type") ?? "", /^application\/problem\+json/);
      }
    }
    assert.equal(runs, 0);
    assert.equal((await put(parts, id, 1)).status, 200, "the lowest token is still the highest");
  });
}

function orderTests(parts: Parts): void {
  test("old and new holders at once, with handlers in several steps: accepted tokens never fall, no update is lost", async () => {
    const id = freshId();
    let lines: readonly number[] = [];
    parts.work = async ({ fence }) => {
      const before = lines;
      for (let step = 0; step < 3; step += 1) await turn();
      lines = [...before, fence.token];
      return "";
    };
    const tokens = Array.from({ length: 40 }, (_, at) => 1 + ((at * 7) % 10));
    const outcomes = await Promise.allSettled(tokens.map((token) => put(parts, id, token)));
    const accepted = tokens.filter((_, at) => outcomes[at]?.status === "fulfilled");
    for (const outcome of outcomes) {
      if (outcome.status === "rejected") assert.ok(outcome.reason instanceof StaleTokenError, String(outcome.reason));
      else assert.equal(outcome.value.status, 200);
    }
    assert.deepEqual(
      lines,
      [...lines].sort((a, b) => a - b),
    );
    assert.deepEqual(
      [...lines],
      accepted.sort((a, b) => a - b),
    );
  });

  test("a slow handler keeps its turn: its successor begins when it has settled, and no other resource waits", async () => {
    const [id, other] = [freshId(), freshId()];
    const slow = gate();
    const order: string[] = [];
    parts.work = async ({ id: whose, fence }) => {
      order.push(`${whose} ${fence.token} begins`);
      if (fence.token === 33) await slow.passed;
      order.push(`${whose} ${fence.token} ends`);
      return "";
    };
    const old = put(parts, id, 33);
    await until("the old one is at work", () => order.length > 0);
    const newer = put(parts, id, 34);
    await arrived(parts, 2);
    await put(parts, other, 1);
    slow.open();
    assert.deepEqual([(await old).status, (await newer).status], [200, 200]);
    assert.deepEqual(order, [
      `${id} 33 begins`,
      `${other} 1 begins`,
      `${other} 1 ends`,
      `${id} 33 ends`,
      `${id} 34 begins`,
      `${id} 34 ends`,
    ]);
  });
}

function waitingTests(parts: Parts): void {
  test("more than may wait are answered with 503, and lose nothing", async () => {
    const id = freshId();
    const slow = gate();
    let runs = 0;
    parts.work = async () => {
      await slow.passed;
      runs += 1;
      return "";
    };
    const waiting = Array.from({ length: 41 }, () => put(parts, id, 5));
    await arrived(parts, 41);
    const beyond = await put(parts, id, 5);
    assert.deepEqual([beyond.status, beyond.headers.get("retry-after")], [503, "1"]);
    assert.equal(((await beyond.json()) as { code: string }).code, "overloaded");
    slow.open();
    for (const response of await Promise.all(waiting)) assert.equal(response.status, 200);
    assert.equal(runs, 41);
  });

  test("a body that is streamed arrives whole", async () => {
    const id = freshId();
    const chunks = Array.from({ length: 50 }, (_, at) => `chunk ${at};`.repeat(20));
    async function* slowly(): AsyncGenerator<Uint8Array> {
      for (const chunk of chunks) {
        await turn();
        yield Buffer.from(chunk);
      }
    }
    const init = { body: ReadableStream.from(slowly()), duplex: "half", headers: { "content-type": "text/plain" } };
    const response = await put(parts, id, 5, init as RequestInit);
    assert.equal(await response.text(), chunks.join(""));
    const late = { ...init, body: ReadableStream.from(slowly()) };
    await assert.rejects(put(parts, id, 4, late as RequestInit), StaleTokenError);
  });
}

function failureTests(parts: Parts): void {
  test("a handler that throws is the framework's affair, and passes its turn on", async () => {
    const id = freshId();
    parts.work = async ({ fence }) => {
      if (fence.token === 5) throw new Error("out of order");
      return "fine";
    };
    const [broken, next] = await Promise.all([put(parts, id, 5), put(parts, id, 6)]);
    assert.deepEqual([broken.status, next.status], [500, 200]);
    await assert.rejects(put(parts, id, 5), StaleTokenError);
  });

  test("what the handler's own store refuses is a 412, too", async () => {
    for (const form of ["guarded", "fenced"]) {
      const id = freshId();
      parts.work = async () => {
        throw new StaleTokenError("row 7", 5, 2 ** 53 - 1);
      };
      await assert.rejects(
        put(parts, id, 5, {}, form),
        (error) =>
          error instanceof StaleTokenError && error.resource === "row 7" && error.highest === Number.MAX_SAFE_INTEGER,
      );
    }
    assert.equal(parts.reports.length, 0, "the store's guard has told of it");
  });
}

function hangUpTests(parts: Parts): void {
  test("a client that hangs up in the middle: its handler keeps the turn until it has settled", async () => {
    const id = freshId();
    const slow = gate();
    const order: string[] = [];
    parts.work = async ({ fence }) => {
      order.push(`${fence.token} begins`);
      if (fence.token === 33) await slow.passed;
      order.push(`${fence.token} ends`);
      return "";
    };
    const closed = parts.app.closedSockets();
    const hangUp = new AbortController();
    const old = put(parts, id, 33, { signal: hangUp.signal });
    await until("the old one is at work", () => order.length > 0);
    hangUp.abort();
    await assert.rejects(old, { name: "AbortError" });
    await until("the server has seen it", () => parts.app.closedSockets() > closed);
    const newer = put(parts, id, 34);
    await arrived(parts, 2);
    slow.open();
    assert.equal((await newer).status, 200);
    assert.deepEqual(order, ["33 begins", "33 ends", "34 begins", "34 ends"]);
  });

  test("a client that hung up while it waited: nothing of it runs, and its token isn't remembered", async () => {
    const id = freshId();
    const slow = gate();
    const order: number[] = [];
    parts.work = async ({ fence }) => {
      order.push(fence.token);
      if (fence.token === 33) await slow.passed;
      return "";
    };
    const old = put(parts, id, 33);
    await until("the old one is at work", () => order.length > 0);
    const closed = parts.app.closedSockets();
    const hangUp = new AbortController();
    const waiting = put(parts, id, 50, { signal: hangUp.signal });
    await arrived(parts, 2);
    hangUp.abort();
    await assert.rejects(waiting, { name: "AbortError" });
    await until("the server has seen it", () => parts.app.closedSockets() > closed);
    const newer = put(parts, id, 34);
    await arrived(parts, 3);
    slow.open();
    assert.deepEqual([(await old).status, (await newer).status], [200, 200]);
    assert.deepEqual(order, [33, 34]);
  });
}

function fenceTests(parts: Parts): void {
  test("the form that holds no turn gives the fence to the guard of the handler's own store", async () => {
    const id = freshId();
    const reports: StaleReport[] = [];
    const notes = new Guard<string>(memoryRegister<string>(), {
      name: "notes",
      onStale: (report) => reports.push(report),
    });
    parts.work = async ({ fence, body }) => {
      await notes.write(fence, body);
      return JSON.stringify(fence);
    };
    const answer = (await (await put(parts, id, 34, { body: "new" }, "fenced")).json()) as object;
    const keyId = parts.signer.publicKey.id;
    const expected = { resource: `doc:${id}`, token: 34, name: `doc:${id}`, mode: "exclusive", slot: null, keyId };
    assert.deepEqual(answer, { ...expected, holder: "127.0.0.1" });
    await assert.rejects(put(parts, id, 33, { body: "late" }, "fenced"), StaleTokenError);
    assert.equal(await notes.read({ resource: `doc:${id}`, token: 34 }), "new");
    const common = { guard: "notes", resource: `doc:${id}`, resourceClass: "unclassified" };
    assert.deepEqual(reports, [{ ...common, holder: "127.0.0.1", presented: 33, highest: 34 }]);
  });
}
