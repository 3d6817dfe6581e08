/**
 * The HTTP API at real nodes: a leader that dies while a wait hangs at it, waits whose clients die, streams over a change of leader. Clients
 * here do what docs/http.md says: follow redirects, and make a request that lost its answer again, anywhere.
 */
import assert from "node:assert/strict";
import { request } from "node:http";
import type { ClientRequest } from "node:http";
import { after, before, describe, it } from "node:test";
import { TestCluster } from "../harness/cluster.js";
import type { TestNode } from "../harness/cluster.js";
import { until } from "../harness/until.js";

type Body = Readonly<Record<string, unknown>>;

interface Told {
  readonly status: number;
  readonly body: Body;
}

interface Asked {
  readonly body?: unknown;
  readonly credential?: string;
  readonly lastEventId?: string;
}

function send(url: string, method: string, { body, credential, lastEventId }: Asked): ClientRequest {
  const headers = {
    ...(credential === undefined ? {} : { "holdfast-session": credential }),
    ...(lastEventId === undefined ? {} : { "last-event-id": lastEventId }),
    ...(body === undefined ? {} : { "content-type": "application/json" }),
  };
  const sent = request(url, { method, headers, agent: false });
  sent.end(body === undefined ? undefined : JSON.stringify(body));
  return sent;
}

/** Null: the connection broke. Follows redirects. */
function once(url: string, method: string, asked: Asked): Promise<Told | null> {
  return new Promise((resolve) => {
    const sent = send(url, method, asked);
    sent.on("error", () => resolve(null));
    sent.on("response", (response) => {
      const { location } = response.headers;
      if (response.statusCode === 307 && location !== undefined) {
        response.resume();
        resolve(once(location, method, asked));
        return;
      }
      let text = "";
      response.on("data", (data: Buffer) => (text += data.toString()));
      response.on("error", () => resolve(null));
      response.on("end", () => {
        resolve({ status: response.statusCode ?? 0, body: text === "" ? {} : (JSON.parse(text) as Body) });
      });
    });
  });
}

describe("the HTTP API", { timeout: 240_000 }, () => {
  let cluster: TestCluster;
  before(async () => {
    cluster = await TestCluster.start({ leaderMs: 90_000 });
  });
  after(async () => cluster?.close());

  /** The same request, at one node after the other, until one answers. */
  async function ask(method: string, path: string, asked: Asked = {}): Promise<Told> {
    let at = 0;
    return until(
      `an answer to ${method} ${path}`,
      async () => {
        at += 1;
        const endpoint = cluster.endpoints[at % cluster.endpoints.length] ?? "";
        const told = await once(`http://${endpoint}${path}`, method, asked);
        return told === null || told.status === 503 ? null : told;
      },
      60_000,
    );
  }

  async function open(ttlMs = 120_000): Promise<string> {
    const { status, body } = await ask("POST", "/v1/sessions", { body: { ttlMs, key: randomKey() } });
    assert.equal(status, 201);
    return String(body["credential"]);
  }

  async function hold(credential: string, request: number, name: string): Promise<number> {
    const { status, body } = await ask("POST", "/v1/acquire", { credential, body: { request, names: [name] } });
    assert.equal(status, 200, JSON.stringify(body));
    return (body["grants"] as { token: number }[])[0]?.token ?? 0;
  }

  async function lock(
    name: string,
  ): Promise<{ waiterCount: number; holders: { session: number; token: number }[] } | null> {
    const { body } = await ask("GET", `/v1/locks/${name}`);
    return body["lock"] as Awaited<ReturnType<typeof lock>>;
  }

  async function whenWaiting(name: string, count: number): Promise<void> {
    await until(`${count} wait for ${name}`, async () => ((await lock(name))?.waiterCount ?? 0) === count);
  }

  async function killLeader(): Promise<TestNode> {
    const leader = await cluster.leader();
    await leader.kill();
    return leader;
  }

  it("a leader that is killed while waits hang at it: the same requests at the next one get one grant each, in their order", async () => {
    const holder = await open();
    const token = await hold(holder, 1, "failover");
    const waiters = [await open(), await open()];
    const body = { request: 1, names: ["failover"], waitMs: 120_000 };
    const waits: Promise<Told>[] = [];
    for (const [at, credential] of waiters.entries()) {
      waits.push(ask("POST", "/v1/acquire", { credential, body }));
      await whenWaiting("failover", at + 1);
    }
    const killed = await killLeader();
    await whenWaiting("failover", 2);
    const released = await ask("POST", "/v1/release", { credential: holder, body: { request: 2, of: 1 } });
    assert.deepEqual(released.body, { request: 2, outcome: "released" });
    const tokens = [token];
    for (const [at, credential] of waiters.entries()) {
      const told = await waits[at];
      assert.equal(told?.status, 200, JSON.stringify(told));
      const again = await ask("POST", "/v1/acquire", { credential, body });
      assert.deepEqual(again.body, told?.body, "who asks again has the same answer");
      const { holders = [] } = (await lock("failover")) ?? {};
      assert.deepEqual(
        holders.map(({ session }) => session),
        [Number(credential.split(".")[0])],
      );
      tokens.push(holders[0]?.token ?? 0);
      await ask("POST", "/v1/release", { credential, body: { request: 2, of: 1 } });
    }
    assert.deepEqual(
      tokens,
      [...tokens].sort((a, b) => a - b),
    );
    assert.equal(new Set(tokens).size, 3);
    killed.start();
    await cluster.leader();
  });

  it("a wait whose client is gone is granted to nobody", async () => {
    const holder = await open();
    await hold(holder, 1, "left");
    const credential = await open();
    const leader = await cluster.leader();
    const waits = [1, 2, 3].map((number) => {
      const body = { request: number, names: ["left"], waitMs: 120_000 };
      const sent = send(`http://${leader.endpoint}/v1/acquire`, "POST", { credential, body });
      sent.on("error", () => undefined);
      return sent;
    });
    await whenWaiting("left", 3);
    for (const sent of waits) sent.destroy();
    await whenWaiting("left", 0);
    await ask("POST", "/v1/release", { credential: holder, body: { request: 2, of: 1 } });
    assert.equal(await lock("left"), null);
    const { body } = await ask("GET", "/v1/session", { credential });
    const outcomes = [1, 2, 3].map((number) => ({ request: number, outcome: "cancelled" }));
    assert.deepEqual([body["holds"], body["waiting"], body["outcomes"]], [[], [], outcomes]);
  });

  it("a stream goes on at the next leader: every change is told once, or a gap is", async () => {
    const credential = await open();
    const seen: { index: number; type: string }[] = [];
    const gaps: number[] = [];
    const stopped = new AbortController();
    const watching = watch("/v1/watch?name=watched", stopped.signal, (event, data) => {
      if (event === "gap") gaps.push(data.index);
      for (const { type } of data.changes ?? []) seen.push({ index: data.index, type });
    });
    await until("it has begun", async () => gaps.length === 1);
    let number = 0;
    const cycle = async (): Promise<void> => {
      number += 2;
      await hold(credential, number - 1, "watched");
      await ask("POST", "/v1/release", { credential, body: { request: number, of: number - 1 } });
    };
    await cycle();
    const killed = await killLeader();
    await cycle();
    killed.start();
    await cycle();
    await until("all is told", async () => seen.length === 6);
    stopped.abort();
    await watching;
    assert.deepEqual(
      seen.map(({ type }) => type),
      Array(3).fill(["granted", "released"]).flat(),
    );
    assert.equal(new Set(seen.map(({ index }) => index)).size, 6);
    assert.equal(gaps.length, 1);
  });

  /** As an EventSource does: it comes back with what it had last. */
  async function watch(
    path: string,
    stopped: AbortSignal,
    onEvent: (event: string, data: { index: number; changes?: { type: string }[] }) => void,
  ): Promise<void> {
    let lastEventId: string | undefined;
    for (let at = 0; !stopped.aborted; at += 1) {
      const endpoint = cluster.endpoints[at % cluster.endpoints.length] ?? "";
      await stream(`http://${endpoint}${path}`, lastEventId, stopped, (id, event, data) => {
        lastEventId = id;
        onEvent(event, JSON.parse(data) as { index: number });
      });
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
});

/** Resolves when the connection is over. */
function stream(
  url: string,
  lastEventId: string | undefined,
  stopped: AbortSignal,
  onEvent: (id: string, event: string, data: string) => void,
): Promise<void> {
  return new Promise((resolve) => {
    const sent = send(url, "GET", lastEventId === undefined ? {} : { lastEventId });
    const stop = (): void => void sent.destroy();
    stopped.addEventListener("abort", stop, { once: true });
    sent.on("error", () => undefined);
    sent.on("close", () => {
      stopped.removeEventListener("abort", stop);
      resolve();
    });
    sent.on("response", (response) => {
      const { location } = response.headers;
      if (response.statusCode === 307 && location !== undefined) {
        response.resume();
        resolve(stream(location, lastEventId, stopped, onEvent));
        return;
      }
      let rest = "";
      response.on("error", () => undefined);
      response.on("data", (data: Buffer) => {
        const events = (rest + data.toString()).split("\n\n");
        rest = events.pop() ?? "";
        for (const text of events) {
          const [, id = "", event = "", value = ""] = /^id: (\d+)\nevent: (\w+)\ndata: (.*)$/.exec(text) ?? [];
          if (value !== "") onEvent(id, event, value);
        }
      });
    });
  });
}

function randomKey(): string {
  return Array.from({ length: 32 }, () => Math.floor(16 * Math.random()).toString(16)).join("");
}
