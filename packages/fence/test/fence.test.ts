import assert from "node:assert/strict";
import { test } from "node:test";

import { FenceError, InvalidArgumentError, StaleTokenError, UnknownOutcomeError, fenceOf } from "../src/index.js";
import type { Fence, FenceSource } from "../src/index.js";

test("a fence comes from a lock handle or is passed on by hand", () => {
  class Handle {
    readonly token = 7;
    readonly name = "doc:42";
    fence(name: string = this.name): Fence {
      return { resource: name, token: this.token };
    }
  }
  const handle = new Handle();
  assert.deepEqual(fenceOf(handle), { resource: "doc:42", token: 7 });
  assert.deepEqual(fenceOf(handle.fence("acct:1")), { resource: "acct:1", token: 7 });
  assert.deepEqual(fenceOf({ token: 1 }), { token: 1 });
  assert.deepEqual(fenceOf({ token: Number.MAX_SAFE_INTEGER, resource: "gpu#3" }), {
    token: 2 ** 53 - 1,
    resource: "gpu#3",
  });
  const literal = fenceOf({ token: 5, resource: "x", body: "more" } as FenceSource);
  assert.deepEqual(literal, { token: 5, resource: "x" }, "only the fence is taken over");
});

test("a lock handle's own refusal comes through as it is", () => {
  const refusal = new Error("this lock has several names");
  const lock = {
    fence(): Fence {
      throw refusal;
    },
  };
  assert.throws(() => fenceOf(lock), refusal);
});

test("what is no fence is refused by name", () => {
  const cases: readonly (readonly [unknown, string])[] = [
    [undefined, "lock"],
    [null, "lock"],
    [7, "lock"],
    ["7", "lock"],
    [{}, "lock.token"],
    [{ token: 0 }, "lock.token"],
    [{ token: -1 }, "lock.token"],
    [{ token: 1.5 }, "lock.token"],
    [{ token: Number.NaN }, "lock.token"],
    [{ token: Number.POSITIVE_INFINITY }, "lock.token"],
    [{ token: 2 ** 53 }, "lock.token"],
    [{ token: "7" }, "lock.token"],
    [{ token: 7n }, "lock.token"],
    [{ fence: () => null }, "lock.fence()"],
    [{ fence: () => ({ resource: "a" }) }, "lock.fence().token"],
    [{ token: 1, resource: "" }, "lock.resource"],
    [{ token: 1, resource: 3 }, "lock.resource"],
    [{ token: 1, resource: null }, "lock.resource"],
    [{ token: 1, resource: "a\ud800" }, "lock.resource"],
    [{ token: 1, resource: "a\0" }, "lock.resource"],
  ];
  for (const [source, argument] of cases) {
    assert.throws(
      () => fenceOf(source as FenceSource),
      (error) =>
        error instanceof InvalidArgumentError && error.code === "invalid_argument" && error.argument === argument,
      `${argument} of ${String(source)}`,
    );
  }
});

test("errors bear their code, their facts, and whether a retry does harm", () => {
  const stale = new StaleTokenError("doc:42", 33, 34);
  assert.ok(stale instanceof FenceError && stale instanceof Error);
  const { name, code, retryable, resource, presented, highest } = stale;
  assert.deepEqual([name, code, retryable], ["StaleTokenError", "stale_token", false]);
  assert.deepEqual({ resource, presented, highest }, { resource: "doc:42", presented: 33, highest: 34 });
  assert.equal(stale.message, "token 33 for doc:42 is stale: token 34 has been accepted");

  const cause = new Error("reset");
  assert.equal(new UnknownOutcomeError("doc:42", null, cause).retryable, true);
  assert.equal(new UnknownOutcomeError("doc:42", "815", cause).retryable, false);
  assert.equal(new UnknownOutcomeError("doc:42", "815", cause).cause, cause);
});
