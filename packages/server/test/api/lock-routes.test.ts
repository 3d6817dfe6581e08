/** Every operation of the HTTP API at three whole nodes, with every answer that openapi.json has for it. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { configOf, raiseVersion, stopAll, Trio } from "../node-harness.js";
import { ask, Judge } from "./document.js";
import { headersFor, HttpClient, shown } from "./http-client.js";

const paths = [
  "/v1/sessions",
  "/v1/session",
  "/v1/session/renew",
  "/v1/acquire",
  "/v1/release",
  "/v1/cancel",
  "/v1/info",
  "/v1/sequencer",
  "/v1/check",
  "/v1/locks",
  "/v1/locks/{name}",
  "/v1/watch",
];
/** A call of each operation that is right but for what a test breaks. */
const calls: readonly { method: string; path: string; body?: object; inSession?: boolean }[] = [
  { method: "POST", path: "/v1/sessions", body: { ttlMs: 60_000 } },
  { method: "GET", path: "/v1/session", inSession: true },
  { method: "DELETE", path: "/v1/session", inSession: true },
  { method: "POST", path: "/v1/session/renew", inSession: true },
  { method: "POST", path: "/v1/acquire", body: { request: 1, names: ["a"] }, inSession: true },
  { method: "POST", path: "/v1/release", body: { request: 2, of: 1 }, inSession: true },
  { method: "POST", path: "/v1/cancel", body: { request: 3, of: 1 }, inSession: true },
  { method: "POST", path: "/v1/info", body: { request: 4, of: 1, info: "later" }, inSession: true },
  { method: "POST", path: "/v1/sequencer", body: { of: 1, name: "a" }, inSession: true },
  { method: "POST", path: "/v1/check", body: { sequencer: "holdfast1" } },
  { method: "GET", path: "/v1/locks" },
  { method: "GET", path: "/v1/locks/a" },
  { method: "GET", path: "/v1/watch?prefix=" },
];

describe("the HTTP API", { timeout: 120_000 }, () => {
  const judge = new Judge();
  let cluster: Trio;
  let leader: HttpClient;
  let followers: HttpClient[];

  before(async () => {
    // Its nodes share a process with this test, and a leader shall stay one.
    cluster = new Trio(await configOf(3, { timing: { electionTimeoutMs: 2_000 } }));
    await cluster.whenReady();
    const at = await cluster.leader();
    const all = cluster.config.nodes.map(({ client }) => new HttpClient(client, judge));
    leader = all[at] as HttpClient;
    followers = all.filter((client) => client !== leader);
  });
  after(stopAll);

  /** What `calls` ask, each with changes. */
  async function everywhere(
    at: HttpClient,
    change: { headers?: Record<string, string>; body?: string; credential?: string; path?: (path: string) => string },
    isAsked: (call: (typeof calls)[number]) => boolean = () => true,
  ): Promise<string[]> {
    const told: string[] = [];
    for (const call of calls.filter(isAsked)) {
      const { method, path, inSession = false } = call;
      const credential = inSession ? (change.credential ?? `1.${"0".repeat(32)}`) : undefined;
      const type = call.body === undefined ? {} : { "content-type": "application/json" };
      const headers = { ...headersFor(credential), ...type, ...change.headers };
      const body = call.body === undefined ? {} : { body: change.body ?? JSON.stringify(call.body) };
      const [answer] = await at.told(method, change.path?.(path) ?? path, { headers, ...body });
      told.push(answer);
    }
    return [...new Set(told)];
  }

  it("opens, shows, renews and closes sessions; a key opens one session however often it comes", async () => {
    const key = "ab".repeat(16);
    const [told, first] = await leader.post("/v1/sessions", { key, ttlMs: 60_000 });
    assert.equal(told, "201");
    assert.deepEqual(await leader.post("/v1/sessions", { key, ttlMs: 30_000 }), ["201", first]);
    const credential = `${String(first["session"])}.${key}`;
    assert.equal(first["credential"], credential);
    const [, renewed] = await leader.post("/v1/session/renew", undefined, credential);
    assert.deepEqual(renewed, { session: first["session"], ttlMs: 60_000 });
    const nothing = { holds: [], waiting: [], outcomes: [] };
    assert.deepEqual(await leader.get("/v1/session", credential), ["200", { ...renewed, ...nothing }]);
    for (let times = 0; times < 2; times += 1) {
      const closed = await leader.told("DELETE", "/v1/session", { headers: headersFor(credential) });
      assert.deepEqual(closed, ["204", {}]);
    }
    const [gone, problem] = await leader.get("/v1/session", credential);
    assert.deepEqual([gone, problem["reason"]], ["410 session_gone", "closed"]);
  });

  it("grants, refuses, lets wait and releases; who asks again has the same answer", async () => {
    const [holder, other] = [await leader.open(), await leader.open()];
    const [grant] = await leader.acquire(holder.credential, 1, ["b", "a", "b"], { lockDelayMs: 0, maxHoldMs: 0 });
    assert.deepEqual(await leader.acquire(holder.credential, 1, ["a", "b"]), [
      { name: "a", token: grant?.token, slot: null },
      { name: "b", token: grant?.token, slot: null },
    ]);
    const [held, refusal] = await leader.post("/v1/acquire", { request: 1, names: ["a"], waitMs: 0 }, other.credential);
    assert.equal(held, "409 lock_held");
    assert.deepEqual(refusal["holder"], {
      session: holder.session,
      token: grant?.token,
      slot: null,
      mode: "exclusive",
      info: "test",
    });
    const [late, timeout] = await leader.post(
      "/v1/acquire",
      { request: 2, names: ["a"], waitMs: 50 },
      other.credential,
    );
    assert.deepEqual([late, timeout["ahead"]], ["409 wait_timeout", 0]);
    const [again] = await leader.post("/v1/acquire", { request: 2, names: ["a"], waitMs: 9_000 }, other.credential);
    assert.equal(again, "409 wait_timeout", "the number is used up");
    const granted = leader.acquire(other.credential, 3, ["a"], { seen: [1, 2] });
    await shown(leader, "/v1/locks/a", (lock) => lock?.["waiterCount"] === 1);
    const release = { request: 2, of: 1 };
    assert.deepEqual(await leader.post("/v1/release", release, holder.credential), [
      "200",
      { request: 2, outcome: "released" },
    ]);
    const [next] = await granted;
    assert.ok((next?.token ?? 0) > (grant?.token ?? 0));
    assert.deepEqual(await leader.post("/v1/release", release, holder.credential), [
      "200",
      { request: 2, outcome: "released" },
    ]);
    const [nothing, found] = await leader.post("/v1/release", { request: 3, of: 1 }, holder.credential);
    assert.deepEqual([nothing, found["outcome"]], ["200", "not_held"]);
    assert.deepEqual(
      (found["holders"] as { session: number }[]).map(({ session }) => session),
      [other.session],
    );
    const [over] = await leader.post("/v1/acquire", { request: 1, names: ["a"] }, holder.credential);
    assert.equal(over, "409 already_released");
    const [settled] = await leader.post("/v1/acquire", { request: 1, names: ["a"], settled: 2 }, holder.credential);
    assert.equal(settled, "400 invalid_argument");
    const [used] = await leader.post("/v1/release", { request: 3, of: 1 }, other.credential);
    assert.equal(used, "400 invalid_argument", "3 is the number of an acquire");
  });

  it("signs what a session holds, and checks it", async () => {
    await raiseVersion(leader.endpoint);
    const [holder, other] = [await leader.open(), await leader.open()];
    const [grant] = await leader.acquire(holder.credential, 1, ["signed"]);
    const asked = { of: 1, name: "signed" };
    const [told, { sequencer }] = await leader.post("/v1/sequencer", asked, holder.credential);
    assert.equal(told, "200");
    assert.match(String(sequencer), new RegExp(`^holdfast1\\.[0-9a-f]{16}\\..*\\.exclusive\\.-\\.${grant?.token}\\.`));
    assert.equal((await leader.post("/v1/sequencer", asked, other.credential))[1]["sequencer"], null);
    const check = async (text: unknown): Promise<unknown[]> => {
      const [status, { isCurrent, verdict, token }] = await leader.post("/v1/check", { sequencer: text });
      return [status, isCurrent, verdict, token];
    };
    assert.deepEqual(await check(sequencer), ["200", true, "current", grant?.token]);
    const forged = String(sequencer).replace(`.${grant?.token}.`, ".9007199254740991.");
    assert.deepEqual(await check(forged), ["200", false, "forged", null]);
    await leader.post("/v1/release", { request: 2, of: 1 }, holder.credential);
    assert.deepEqual(await check(sequencer), ["200", false, "over", null]);
  });

  it("shared, slots, lock-delay, afterMs", async () => {
    const { credential } = await leader.open();
    const [first] = await leader.acquire(credential, 1, ["s"], { mode: "shared" });
    const [second] = await leader.acquire(credential, 2, ["s"], { mode: "shared" });
    assert.equal(first?.token, second?.token);
    const [slot] = await leader.acquire(credential, 3, ["gpu"], { mode: "slot", slots: 2 });
    assert.equal(slot?.slot, 0);
    const other = { request: 4, names: ["gpu"], mode: "slot", slots: 3 };
    const [differ, { slots }] = await leader.post("/v1/acquire", other, credential);
    assert.deepEqual([differ, slots], ["409 slots_differ", 2]);
    await leader.acquire(credential, 5, ["d"]);
    await leader.post("/v1/release", { request: 6, of: 5, afterMs: 30_000 }, credential);
    const [delayed, { delayMs }] = await leader.post(
      "/v1/acquire",
      { request: 7, names: ["d"], waitMs: 0 },
      credential,
    );
    assert.deepEqual([delayed, delayMs], ["409 lock_delayed", 30_000]);
    const [, view] = await leader.get("/v1/session", credential);
    assert.deepEqual(
      (view["holds"] as { request: number }[]).map(({ request }) => request),
      [1, 2, 3],
    );
    assert.deepEqual(view["outcomes"], [
      { request: 4, outcome: "slots_differ" },
      { request: 5, outcome: "released" },
      { request: 6, outcome: "released" },
      { request: 7, outcome: "lock_delayed" },
    ]);
  });

  it("a hold that its time has ended is lost, and its session lives", async () => {
    const { credential } = await leader.open();
    await leader.acquire(credential, 1, ["short"], { maxHoldMs: 1 });
    await shown(leader, "/v1/locks/short", (lock) => lock === null);
    const [told, { reason }] = await leader.post("/v1/acquire", { request: 1, names: ["short"] }, credential);
    assert.deepEqual([told, reason], ["409 lock_lost", "max_hold"]);
  });

  it("cancels what waits, what has not come yet, and no grant", async () => {
    const [holder, { credential }] = [await leader.open(), await leader.open()];
    const [held] = await leader.acquire(holder.credential, 1, ["c"]);
    const waiting = leader.post("/v1/acquire", { request: 1, names: ["c"] }, credential);
    await shown(leader, "/v1/locks/c", (lock) => lock?.["waiterCount"] === 1);
    const cancelled = { request: 2, outcome: "cancelled" };
    assert.deepEqual(await leader.post("/v1/cancel", { request: 2, of: 1 }, credential), ["200", cancelled]);
    assert.equal((await waiting)[0], "409 wait_timeout");
    await leader.post("/v1/cancel", { request: 3, of: 4 }, credential);
    assert.equal(
      (await leader.post("/v1/acquire", { request: 4, names: ["free"] }, credential))[0],
      "409 wait_timeout",
    );
    assert.deepEqual(await leader.post("/v1/cancel", { request: 2, of: 1 }, holder.credential), [
      "200",
      { request: 2, outcome: "already_granted", grants: [held] },
    ]);
    const [, { outcome }] = await leader.post("/v1/cancel", { request: 5, of: 99 }, credential);
    assert.equal(outcome, "cancelled", "of what may still come");
    const [, nothing] = await leader.post("/v1/cancel", { request: 6, of: 1 }, credential);
    assert.equal(nothing["outcome"], "not_held");
  });

  it("changes what is shown of a holder and of a waiter, and tells watches of the holder's", async () => {
    const [holder, waiter] = [await leader.open(), await leader.open()];
    await leader.acquire(holder.credential, 1, ["i"]);
    const waiting = leader.acquire(waiter.credential, 1, ["i"]);
    await shown(leader, "/v1/locks/i", (lock) => lock?.["waiterCount"] === 1);
    const isTold = (text: string): boolean => text.includes('"info"');
    const watched = leader.ask("GET", "/v1/watch?name=i&after=1", { until: isTold });
    const set = { request: 2, of: 1, info: "half done" };
    for (let times = 0; times < 2; times += 1) {
      assert.deepEqual(await leader.post("/v1/info", set, holder.credential), [
        "200",
        { request: 2, outcome: "info_set" },
      ]);
    }
    await leader.post("/v1/info", { ...set, info: "patient" }, waiter.credential);
    const [, { lock }] = await leader.get("/v1/locks/i");
    const infos = ["holders", "waiters"].map((kind) => (lock as Record<string, { info: string }[]>)[kind]?.[0]?.info);
    assert.deepEqual(infos, ["half done", "patient"]);
    assert.match((await watched).text, /"type":"info","name":"i"/);
    await leader.post("/v1/release", { request: 3, of: 1 }, holder.credential);
    await waiting;
    const [, nothing] = await leader.post("/v1/info", { ...set, request: 4 }, holder.credential);
    assert.equal(nothing["outcome"], "not_held");
    const { session } = holder;
    const [, view] = await leader.get("/v1/session", holder.credential);
    assert.deepEqual(
      [view["session"], (view["outcomes"] as unknown[])[1]],
      [session, { request: 2, outcome: "info_set" }],
    );
    const wrong = await leader.post("/v1/info", { request: 5, of: 1, info: 7 }, holder.credential);
    assert.deepEqual([wrong[0], wrong[1]["argument"]], ["400 invalid_argument", "info"]);
  });

  it("lists in pages, and shows one lock by any name", async () => {
    const { credential } = await leader.open();
    const names = ["page:1", "page:2", "page:3", "page:a/b?c&ü+ %"];
    await leader.acquire(credential, 1, names);
    const [, first] = await leader.get("/v1/locks?prefix=page%3A&limit=2");
    assert.equal(first["next"], "page:2");
    const [, rest] = await leader.get(`/v1/locks?prefix=page:&after=${encodeURIComponent("page:2")}`);
    const found = [first, rest].flatMap(({ locks }) => (locks as { name: string }[]).map(({ name }) => name));
    assert.deepEqual([found, rest["next"]], [names, null]);
    const [told, { lock }] = await leader.get(`/v1/locks/${encodeURIComponent(names[3] ?? "")}`);
    assert.deepEqual([told, (lock as { name: string }).name], ["200", names[3]]);
    const head = await ask(leader.endpoint, "HEAD", "/v1/locks/page%3A1");
    assert.deepEqual([head.status, head.text], [200, ""]);
    assert.ok(Number(head.headers["content-length"]) > 50);
  });

  it("tells changes as events, and goes on after the one that its client has seen", async () => {
    const { credential } = await leader.open();
    const began = leader.ask("GET", "/v1/watch?name=w", { until: (text) => text.includes("gap") });
    const index = Number(/^id: (\d+)$/m.exec((await began).text)?.[1]);
    await leader.acquire(credential, 1, ["w"]);
    await leader.post("/v1/release", { request: 2, of: 1 }, credential);
    const until = (text: string): boolean => text.includes('"released"');
    for (const path of [`/v1/watch?name=w&after=${index}`, "/v1/watch?prefix=w&after=99999"]) {
      const headers = { "last-event-id": String(index) };
      const { text } = await leader.ask("GET", path, { headers, until });
      assert.deepEqual(
        [...text.matchAll(/^event: (\w+)$/gm)].map(([, kind]) => kind),
        ["watching", "changes", "changes"],
      );
    }
  });

  it("refuses bodies that are too long, or no JSON, and wrong arguments by their names", async () => {
    const hasBody = ({ body }: (typeof calls)[number]): boolean => body !== undefined;
    const long = JSON.stringify({ names: ["x".repeat(300_000)] });
    assert.deepEqual(await everywhere(leader, { body: long }, hasBody), ["413 invalid_argument"]);
    const chunked = { "transfer-encoding": "chunked" };
    assert.deepEqual(await everywhere(leader, { body: long, headers: chunked }, hasBody), ["413 invalid_argument"]);
    for (const headers of [{ "content-type": "text/plain" }, { "content-encoding": "gzip" }]) {
      assert.deepEqual(await everywhere(leader, { headers }, hasBody), ["415 invalid_argument"]);
    }
    for (const body of ["", "{", "[]", "null", '{"x":1}', "\u0000", '{"status":1}']) {
      assert.deepEqual(await everywhere(leader, { body }, hasBody), ["400 invalid_argument"], body);
    }
    const inSession = ({ inSession: is = false }: (typeof calls)[number]): boolean => is;
    for (const credential of ["", "1", "1.", `0.${"0".repeat(32)}`, `1.${"A".repeat(32)}`]) {
      assert.deepEqual(await everywhere(leader, { credential }, inSession), ["400 invalid_argument"], credential);
    }
    const path = (right: string): string => `${right.replace("locks/a", "locks/%ff").replace("?prefix=", "")}?no=1`;
    const isOpen = (call: (typeof calls)[number]): boolean => !hasBody(call) && !inSession(call);
    assert.deepEqual(await everywhere(leader, { path }, isOpen), ["400 invalid_argument"]);
  });

  it("keeps pages of others out, and strangers out of sessions", async () => {
    const { session } = await leader.open();
    assert.deepEqual(await everywhere(leader, { headers: { origin: "http://evil.example" } }), ["403 unauthorized"]);
    assert.deepEqual(await everywhere(leader, { headers: { host: "evil.example" } }), ["421 invalid_argument"]);
    // A sequencer is asked for past the session's connection: for a stranger there is none, as for an acquire that holds nothing.
    const inSession = ({ inSession: is = false, path }: (typeof calls)[number]): boolean =>
      is && path !== "/v1/sequencer";
    const stranger = `${session}.${"0".repeat(32)}`;
    assert.deepEqual(await everywhere(leader, { credential: stranger }, inSession), ["403 unauthorized"]);
    assert.deepEqual(await everywhere(leader, { credential: `999999.${"0".repeat(32)}` }, inSession), [
      "410 session_gone",
    ]);
  });

  it("a session has room for so many requests whose ends it was not told of", async () => {
    const { credential } = await leader.open();
    const numbers = Array.from({ length: 1_024 }, (_, at) => at + 1);
    for (let at = 0; at < numbers.length; at += 32) {
      const some = numbers.slice(at, at + 32);
      await Promise.all(some.map((request) => leader.post("/v1/release", { request, of: 5_000 }, credential)));
    }
    const [full] = await leader.post("/v1/acquire", { request: 1_025, names: ["f"] }, credential);
    assert.equal(full, "429 overloaded");
    await leader.acquire(credential, 1_025, ["f"], { settled: 1_025 });
  });

  it("sends to the leader, with path and query", async () => {
    const [follower] = followers as [HttpClient];
    assert.deepEqual(await everywhere(follower, {}), ["307 not_leader"]);
    const { headers } = await follower.ask("GET", "/v1/locks?prefix=a%2Fb");
    assert.equal(headers.location, `http://${leader.endpoint}/v1/locks?prefix=a%2Fb`);
  });

  it("says to come back where nobody leads", async () => {
    const [last, other] = followers as [HttpClient, HttpClient];
    const nodes = cluster.config.nodes.map(({ client }) => client);
    for (const gone of [leader, other]) await cluster.nodes[nodes.indexOf(gone.endpoint)]?.stop();
    const isLost = async (): Promise<boolean> => (await last.get("/v1/locks"))[0] === "503 not_leader";
    for (const endMs = performance.now() + 30_000; !(await isLost()); ) assert.ok(performance.now() < endMs);
    assert.deepEqual(await everywhere(last, {}), ["503 not_leader"]);
  });

  it("each documented answer was seen, but for those of a cluster below version 2: first-version.test.ts", () => {
    assert.deepEqual(
      judge.unseen((path) => paths.includes(path)).filter((name) => !name.endsWith(" 501")),
      [],
    );
  });
});
