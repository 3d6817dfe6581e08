import { strict as assert } from "node:assert";
import { describe, test } from "node:test";
import { CachedLookup } from "../src/cached-lookup.js";
import { createSystemClock } from "../src/clock.js";

describe("name look-ups", () => {
  function setUp(answers: (string[] | null)[]) {
    let nowMs = 0;
    let asked = 0;
    const cache = new CachedLookup({ ...createSystemClock(), monotonicMs: () => nowMs }, (_, __, callback) => {
      const answer = answers[asked] ?? null;
      asked += 1;
      if (answer === null) callback(Object.assign(new Error("no such name"), { code: "ENOTFOUND" }), []);
      else
        callback(
          null,
          answer.map((address) => ({ address, family: 4 })),
        );
    });
    const ask = (all: boolean): Promise<unknown> =>
      new Promise((resolve) =>
        cache.lookup("peer.example", { all }, (error, address) => resolve(error === null ? address : error.message)),
      );
    return { cache, ask, asked: () => asked, pass: (ms: number) => (nowMs += ms) };
  }

  test("serve for half a minute, in both shapes that net asks for", async () => {
    const { ask, asked, pass } = setUp([["10.0.0.1", "10.0.0.2"], ["10.0.0.3"]]);
    assert.equal(await ask(false), "10.0.0.1");
    assert.deepEqual(await ask(true), [
      { address: "10.0.0.1", family: 4 },
      { address: "10.0.0.2", family: 4 },
    ]);
    assert.equal(asked(), 1);
    pass(30_001);
    assert.equal(await ask(false), "10.0.0.3");
  });

  test("an old answer is better than none, unless it turned out to be wrong", async () => {
    const { cache, ask, pass } = setUp([["10.0.0.1"], null, null]);
    assert.equal(await ask(false), "10.0.0.1");
    pass(60_000);
    assert.equal(await ask(false), "10.0.0.1", "the name server is down");
    cache.forget("peer.example");
    assert.equal(await ask(false), "no such name");
  });
});
