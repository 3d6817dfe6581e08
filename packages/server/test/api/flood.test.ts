/** Random requests at a whole node: each has an answer that says what it is, the node lives, and what was held is held. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import fc from "fast-check";
import { configOf, stopAll, Trio } from "../node-harness.js";
import { ask, Judge } from "./document.js";
import { HttpClient } from "./http-client.js";

const known = [
  "/v1/sessions",
  "/v1/session",
  "/v1/session/renew",
  "/v1/acquire",
  "/v1/release",
  "/v1/cancel",
  "/v1/locks",
  "/v1/locks/a",
  "/v1/locks/%ff",
  "/v1/status",
  "/livez",
];
const words = ["request", "settled", "seen", "of", "names", "mode", "slots", "waitMs", "info", "ttlMs", "key"];

describe("a flood of requests", { timeout: 120_000 }, () => {
  const judge = new Judge();
  let client: HttpClient;
  before(async () => {
    const cluster = new Trio(await configOf(1));
    await cluster.whenReady();
    client = new HttpClient(cluster.config.nodes[0]?.client ?? "", judge);
  });
  after(stopAll);

  it("gets typed answers, and takes nothing from anybody", async () => {
    const [holder, flooder] = [await client.open(600_000), await client.open(600_000)];
    const [held] = await client.acquire(holder.credential, 1, ["a"]);
    const value = fc.oneof(
      fc.jsonValue(),
      fc.constantFrom<unknown>(0, 1, 2, -1, 1.5, 2 ** 53, ["a"], ["b", "b"], "shared", "slot", "a".repeat(600), null),
    );
    const body = fc.oneof(
      { weight: 4, arbitrary: fc.dictionary(fc.constantFrom(...words), value).map((fields) => JSON.stringify(fields)) },
      fc.jsonValue().map((any) => JSON.stringify(any)),
      fc.string({ unit: "binary" }),
    );
    const path = fc.oneof(
      { weight: 4, arbitrary: fc.constantFrom(...known) },
      fc.webPath().map((text) => `/${text.replaceAll(/^\/+/g, "")}`),
    );
    const query = fc.oneof(
      fc.constant(""),
      fc.webQueryParameters().map((text) => `?${text}`),
    );
    const headers = fc.record(
      {
        "content-type": fc.constantFrom("application/json", "application/json; charset=utf-8", "text/plain"),
        "holdfast-session": fc.constantFrom(flooder.credential, `${holder.session}.${"0".repeat(32)}`, "x"),
        "last-event-id": fc.constantFrom("1", "x"),
      },
      { requiredKeys: [] },
    );
    const method = fc.constantFrom("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH");
    await fc.assert(
      fc.asyncProperty(method, path, query, headers, body, async (verb, where, search, head, text) => {
        const hasBody = verb === "POST" || verb === "PUT" || verb === "PATCH";
        // A wait that a random body asks for is no part of this.
        if (hasBody && /"waitMs"/.test(text)) return;
        const asked = { headers: head, ...(hasBody ? { body: text } : {}) };
        const answer = await ask(client.endpoint, verb, `${where}${search}`, asked);
        if (answer.status >= 400 && verb !== "HEAD") {
          assert.equal(answer.headers["content-type"], "application/problem+json");
          const { status, code, detail } = JSON.parse(answer.text) as Record<string, unknown>;
          assert.deepEqual([status, typeof code, typeof detail], [answer.status, "string", "string"]);
          assert.ok(answer.status < 500, answer.text);
        } else if (["GET", "POST", "DELETE"].includes(verb)) judge.check(verb, where, answer);
      }),
      { numRuns: 400 },
    );
    const [told, view] = await client.get("/v1/session", holder.credential);
    assert.equal(told, "200");
    assert.deepEqual(view["holds"], [{ request: 1, grants: [held], maxHoldMs: 0 }]);
    assert.deepEqual(await client.acquire(holder.credential, 1, ["a"]), [held]);
  });
});
