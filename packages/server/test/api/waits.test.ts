/** Time, leavings and changes of leader for what comes over HTTP, at whole nodes over a virtual network. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { encodeCommand } from "@holdfast/wire";
import { VirtualCluster } from "../virtual/virtual-cluster.js";
import type { VirtualNode } from "../virtual/virtual-cluster.js";
import { VirtualHttp } from "./virtual-http.js";

interface World {
  readonly cluster: VirtualCluster;
  readonly node: VirtualNode;
  readonly http: VirtualHttp;
}

async function start(): Promise<World> {
  const cluster = new VirtualCluster();
  const node = await cluster.leader();
  return { cluster, node, http: new VirtualHttp(cluster, node) };
}

interface Shown {
  readonly holders: readonly { readonly session: number; readonly token: number }[];
  readonly waiterCount: number;
}

async function show(http: VirtualHttp, name: string): Promise<Shown> {
  const { value } = await http.ask("inspect", { parameter: name });
  return (value["lock"] ?? { holders: [], waiterCount: 0 }) as Shown;
}

function assertIdle({ cluster, node }: World): void {
  assert.equal(node.host?.gateway.connectionCount, 0, "no connection stays behind");
  assert.deepEqual(cluster.errors, []);
}

const acquire = (request: number, waitMs = 30_000): object => ({ request, names: ["a"], waitMs });
const sessionOf = (credential: string): number => Number(credential.split(".")[0]);

describe("a wait over HTTP", () => {
  it("ends when its time is over, and leaves the queue", async () => {
    const world = await start();
    const { cluster, http } = world;
    const [holder, credential] = [await http.open(), await http.open()];
    const token = await http.hold(holder, 1, "a");
    const waiting = http.begin("acquire", { credential, body: acquire(1, 5_000) });
    await cluster.clock.pass(4_990);
    assert.equal(waiting.told, "open");
    await cluster.clock.pass(50);
    assert.equal(waiting.told, "409 wait_timeout");
    assert.deepEqual([waiting.value["ahead"], (waiting.value["holder"] as { token: number }).token], [0, token]);
    assert.equal((await show(http, "a")).waiterCount, 0);
    assertIdle(world);
  });

  it("is asked twice: the one with more time goes on, and both are granted", async () => {
    const world = await start();
    const { cluster, http } = world;
    const [holder, credential] = [await http.open(), await http.open()];
    await http.hold(holder, 1, "a");
    const waits = [1_000, 9_000, 9_000].map((waitMs) =>
      http.begin("acquire", { credential, body: acquire(1, waitMs) }),
    );
    await cluster.clock.pass(2_000);
    assert.deepEqual(
      waits.map(({ told }) => told),
      ["409 wait_timeout", "open", "open"],
    );
    waits[2]?.leave();
    await http.ask("release", { credential: holder, body: { request: 2, of: 1 } });
    await cluster.clock.pass(100);
    assert.equal(waits[1]?.told, "200 granted");
    assert.equal((await show(http, "a")).holders[0]?.session, sessionOf(credential));
    assertIdle(world);
  });

  it("that is left is cancelled", async () => {
    const world = await start();
    const { cluster, http } = world;
    const [holder, credential] = [await http.open(), await http.open()];
    await http.hold(holder, 1, "a");
    const waiting = http.begin("acquire", { credential, body: acquire(1) });
    await cluster.clock.pass(100);
    assert.equal((await show(http, "a")).waiterCount, 1);
    waiting.leave();
    await cluster.clock.pass(100);
    assert.deepEqual(await show(http, "a"), { ...(await show(http, "a")), waiterCount: 0 });
    await http.ask("release", { credential: holder, body: { request: 2, of: 1 } });
    assert.deepEqual((await show(http, "a")).holders, []);
    const again = await http.ask("acquire", { credential, body: acquire(1) });
    assert.equal(again.told, "409 wait_timeout");
    assertIdle(world);
  });

  it("that is repeated and left takes nothing from who may know of the grant", async () => {
    const world = await start();
    const { cluster, http } = world;
    const credential = await http.open();
    const token = await http.hold(credential, 1, "a");
    for (const leaveAfterMs of [0, 1, 2, 3, 4, 8]) {
      const repeated = http.begin("acquire", { credential, body: acquire(1) });
      await cluster.clock.pass(leaveAfterMs);
      repeated.leave();
      await cluster.clock.pass(50);
    }
    assert.deepEqual(
      (await show(http, "a")).holders.map((each) => each.token),
      [token],
    );
    assertIdle(world);
  });

  it("ends with its session", async () => {
    const world = await start();
    const { cluster, http } = world;
    const [holder, credential] = [await http.open(), await http.open(2_000)];
    await http.hold(holder, 1, "a");
    const waiting = await http.ask("acquire", { credential, body: acquire(1, 3_600_000) });
    assert.deepEqual([waiting.told, waiting.value["reason"]], ["410 session_gone", "expired"]);
    await cluster.clock.pass(100);
    assertIdle(world);
  });

  it("whatever is left, repeated and released when: nothing is granted to nobody, and no grant that was told is taken", async () => {
    // A request takes 3 ms here, and the first wait is left at 6: everything crosses everything.
    const repeats = [null, 5, 6, 7, 8, 9, 10, 11];
    for (const free of [0, 1, 2, 3, 4, 5]) {
      for (const repeat of repeats) {
        await cross(free, repeat, null);
        if (repeat !== null) await cross(free, repeat, 2);
      }
    }
  });

  /** In milliseconds: when the lock is released, the request repeated, and that repetition left. */
  async function cross(free: number, repeat: number | null, leaveAgain: number | null): Promise<void> {
    const world = await start();
    const { cluster, http } = world;
    const [holder, credential] = [await http.open(), await http.open()];
    await http.hold(holder, 1, "a");
    const waits = [http.begin("acquire", { credential, body: acquire(1) })];
    await cluster.clock.pass(50);
    cluster.clock.after(6, () => waits[0]?.leave());
    cluster.clock.after(free, () => http.begin("release", { credential: holder, body: { request: 2, of: 1 } }));
    if (repeat !== null) {
      cluster.clock.after(repeat, () => waits.push(http.begin("acquire", { credential, body: acquire(1) })));
      if (leaveAgain !== null) cluster.clock.after(repeat + leaveAgain, () => waits[1]?.leave());
    }
    await cluster.clock.pass(200);
    const told = waits.map((each) => each.told);
    const what = `${free}, ${repeat}, ${leaveAgain}: ${told.join()}`;
    const known = ["left", "200 granted", "409 wait_timeout", "409 already_released"];
    assert.ok(
      told.every((each) => known.includes(each)),
      what,
    );
    const { holders, waiterCount } = await show(http, "a");
    const expected = told.includes("200 granted") ? [sessionOf(credential)] : [];
    assert.deepEqual([holders.map(({ session }) => session), waiterCount], [expected, 0], what);
    assertIdle(world);
  }
});

describe("sessions over HTTP", () => {
  it("live as long as they are renewed, and are shown as of now", async () => {
    const world = await start();
    const { cluster, http } = world;
    const credential = await http.open(2_000);
    for (let times = 0; times < 10; times += 1) {
      await cluster.clock.pass(1_000);
      assert.equal((await http.ask("renewSession", { credential })).told, "200");
    }
    const views = [0, 1, 2].map(() => http.begin("viewSession", { credential }));
    const granted = http.begin("acquire", { credential, body: acquire(1) });
    const renewals = [0, 1].map(() => http.begin("renewSession", { credential }));
    await cluster.clock.pass(200);
    const all = [...views, granted, ...renewals];
    assert.deepEqual(
      all.map(({ told }) => told),
      ["200", "200", "200", "200 granted", "200", "200"],
    );
    const last = await http.ask("viewSession", { credential });
    assert.deepEqual(
      (last.value["holds"] as { request: number }[]).map(({ request }) => request),
      [1],
    );
    await cluster.clock.pass(6_000);
    assert.equal((await http.ask("renewSession", { credential })).told, "410 session_gone");
    assertIdle(world);
  });

  it("go over to whoever resumes them", async () => {
    const world = await start();
    const { cluster, http, node } = world;
    const [holder, credential] = [await http.open(), await http.open()];
    await http.hold(holder, 1, "a");
    const waiting = http.begin("acquire", { credential, body: acquire(1) });
    await cluster.clock.pass(100);
    const [session = "", key = ""] = credential.split(".");
    const socket = cluster.client(node);
    socket.sendAll({ kind: "resume", session: Number(session), key });
    await socket.expect("resumed");
    await cluster.clock.pass(50);
    assert.equal(waiting.told, "503 unknown_outcome");
    assert.equal((await show(http, "a")).waiterCount, 1, "it isn't this one's to cancel");
    assert.deepEqual(cluster.errors, []);
  });
});

describe("a change of leader", () => {
  it("in the midst of a wait: the same request at the new leader waits on, and gets one grant", async () => {
    const { cluster, node, http } = await start();
    const [holder, credential] = [await http.open(), await http.open()];
    await http.hold(holder, 1, "a");
    http.begin("acquire", { credential, body: acquire(1) });
    await cluster.clock.pass(100);
    cluster.kill(node);
    const next = await cluster.leader();
    const other = new VirtualHttp(cluster, next);
    const repeated = other.begin("acquire", { credential, body: acquire(1) });
    await cluster.clock.pass(500);
    assert.deepEqual([repeated.told, (await show(other, "a")).waiterCount], ["open", 1]);
    const release = { credential: holder, body: { request: 2, of: 1 } };
    assert.equal((await other.ask("release", release)).told, "200 released");
    await cluster.clock.pass(100);
    assert.equal(repeated.told, "200 granted");
    const again = await other.ask("acquire", { credential, body: acquire(1) });
    assert.deepEqual(again.value, repeated.value);
    assert.deepEqual((await other.ask("release", release)).value, { request: 2, outcome: "released" });
    const { holders } = await show(other, "a");
    assert.deepEqual(
      holders.map(({ session }) => session),
      [sessionOf(credential)],
    );
    assertIdle({ cluster, node: next, http: other });
  });

  it("a leader that is deposed answers what waits at it, and ends its streams", async () => {
    const world = await start();
    const { cluster, node, http } = world;
    const [holder, credential] = [await http.open(), await http.open()];
    await http.hold(holder, 1, "a");
    const waiting = http.begin("acquire", { credential, body: acquire(1) });
    const stream = http.begin("watch", { query: "prefix=" });
    await cluster.clock.pass(100);
    assert.match(stream.events ?? "", /^retry: 1000\n\nid: \d+\nevent: gap\n/);
    cluster.isolate(node);
    const read = http.begin("list");
    await cluster.clock.pass(3_000);
    assert.deepEqual([waiting.told, read.told, stream.isEnded], ["503 not_leader", "503 not_leader", true]);
    assert.equal(waiting.answered?.headers?.["retry-after"], "1");
    cluster.heal();
    await cluster.clock.pass(2_000);
    const sent = await http.ask("acquire", { credential, body: acquire(1) });
    const next = await cluster.leader();
    assert.deepEqual([sent.told, sent.answered?.redirectTo], ["307 not_leader", `${next.id}:7101`]);
    assertIdle(world);
  });

  it("a stream goes on at the next leader after the event that it had last", async () => {
    const { cluster, node, http } = await start();
    const credential = await http.open();
    const stream = http.begin("watch", { query: "name=a" });
    await cluster.clock.pass(100);
    await http.hold(credential, 1, "a");
    await cluster.clock.pass(100);
    const seen = [...(stream.events ?? "").matchAll(/^id: (\d+)$/gm)].map(([, id = ""]) => id);
    cluster.kill(node);
    const other = new VirtualHttp(cluster, await cluster.leader());
    await other.ask("release", { credential, body: { request: 2, of: 1 } });
    const resumed = other.begin("watch", { query: "name=a", lastEventId: seen.at(-1) ?? "" });
    await cluster.clock.pass(100);
    const events = [...(resumed.events ?? "").matchAll(/^event: (.*)\ndata: (.*)$/gm)].map(([, event, data = ""]) => {
      const { changes = [] } = JSON.parse(data) as { readonly changes?: readonly { readonly type: string }[] };
      return [event, ...changes.map(({ type }) => type)].join(" ");
    });
    assert.deepEqual(events, ["watching", "changes released"]);
  });
});

describe("streams", () => {
  it("say that they live, and nothing of a reader that is cut off or leaves stays behind", async () => {
    const world = await start();
    const { cluster, http } = world;
    const credential = await http.open(600_000);
    const streams = [{}, { bytesMax: 200 }, {}].map((more) => http.begin("watch", { query: "prefix=", ...more }));
    await cluster.clock.pass(100);
    streams[2]?.leave();
    for (let request = 1; request < 20; request += 2) {
      await http.hold(credential, request, "a");
      await http.ask("release", { credential, body: { request: request + 1, of: request } });
    }
    await cluster.clock.pass(31_000);
    const [whole, cut] = streams;
    assert.equal(whole?.events?.match(/"granted"/g)?.length, 10);
    assert.equal(whole?.events?.match(/^: alive$/gm)?.length, 2);
    assert.deepEqual([whole?.isEnded, cut?.isEnded], [false, true]);
    assert.ok((cut?.events?.length ?? 0) < 500);
    whole?.leave();
    assertIdle(world);
  });
});

describe("a traced request", () => {
  const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  const traces = ({ cluster }: World): object[] => cluster.details.filter((facts) => "traceparent" in facts);

  it("over HTTP is told in the node's log by its header, with session and request and without the lock's name", async () => {
    const world = await start();
    const { http } = world;
    const opened = await http.ask("openSession", { traceparent, body: {} });
    const credential = String(opened.value["credential"]);
    const session = sessionOf(credential);
    await http.ask("acquire", { credential, traceparent, body: acquire(1) });
    await http.ask("release", { credential, traceparent, body: { request: 2, of: 1 } });
    assert.deepEqual(traces(world), [
      { traceparent, kind: "openSession" },
      { traceparent, kind: "acquire", session, request: 3 },
      { traceparent, kind: "release", session, request: 6 },
    ]);
    assertIdle(world);
  });

  it("whose header is broken is a request like any other", async () => {
    const world = await start();
    const { http } = world;
    const credential = await http.open();
    const granted = await http.ask("acquire", { credential, traceparent: "broken", body: acquire(1) });
    assert.equal(granted.told, "200 granted");
    assert.deepEqual(traces(world), []);
  });

  it("of a client is told by what its frame bears", async () => {
    const world = await start();
    const client = world.cluster.client(world.node);
    const payload = encodeCommand({ kind: "openSession", key: "1".repeat(32), ttlMs: 60_000, info: "" });
    client.sendAll({ kind: "command", payload, traceparent });
    await client.expect("sessionOpened");
    assert.deepEqual(traces(world), [{ traceparent, kind: "openSession" }]);
  });
});
