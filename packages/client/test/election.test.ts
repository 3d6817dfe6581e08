/** lead and elect as their users call them. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Term } from "../src/election.js";
import { outcomeOf, World } from "./world/world.js";

/** Resolves when the signal aborts. */
function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}

describe("lead", () => {
  test("leads, gives back what it kept, and resolves with the body's result", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const leading = holdfast.lead("scheduler", (term) => {
      term.assertHeld();
      assert.deepEqual(term.fence(), { resource: "scheduler", token: term.token });
      return [term.name, term.state];
    });
    assert.deepEqual(await world.within(100, leading), ["scheduler", "held"]);
    assert.equal(world.cluster.machine.lockCount, 0);
  });

  // A 44: one failed renewal was the end of leading, for good.
  test("campaigns again after a loss, with a greater token", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const terms: Term[] = [];
    const leading = outcomeOf(
      holdfast.lead("scheduler", async (term) => {
        terms.push(term);
        if (terms.length === 2) return "done";
        await aborted(term.signal);
        throw new Error("stopped by the loss");
      }),
    );
    await world.until(100, "it leads", () => terms.length === 1);
    world.cluster.expire(101);
    await world.until(10_000, "it has led again", () => leading.isSettled);
    assert.equal(leading.value, "done");
    const [first, second] = terms;
    assert.ok(first !== undefined && second !== undefined && second.token > first.token);
    assert.equal(first.state, "lost");
  });

  test("rejects with what the body throws in a term that it kept", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const failure = new Error("body");
    const leading = outcomeOf(
      holdfast.lead("scheduler", () => {
        throw failure;
      }),
    );
    await world.clock.advance(100);
    assert.equal(leading.error, failure);
    assert.equal(world.cluster.machine.lockCount, 0);
  });

  test("waits while another leads; an abort ends the campaign, and is handed on to a term", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const other = await world.connect({}, 2);
    const controller = new AbortController();
    const reason = new Error("shut down");
    const leading = outcomeOf(
      holdfast.lead("scheduler", { signal: controller.signal }, async ({ signal }) => {
        await aborted(signal);
        return signal.reason;
      }),
    );
    await world.clock.advance(100);
    const waiting = outcomeOf(other.lead("scheduler", { signal: controller.signal }, () => "led"));
    await world.clock.advance(10 * 60_000);
    assert.equal(waiting.isSettled, false);
    controller.abort(reason);
    await world.until(1_000, "both have ended", () => leading.isSettled && waiting.isSettled);
    assert.equal(leading.value, reason);
    assert.equal(waiting.error, reason);
  });

  test("refuses wrong arguments by their names", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const refused = async (call: Promise<unknown>): Promise<string | undefined> => {
      const outcome = outcomeOf(call);
      await world.clock.advance(1);
      return (outcome.error as { argument?: string }).argument;
    };
    assert.equal(await refused(holdfast.lead("", () => 1)), "name");
    assert.equal(await refused(holdfast.lead("a", {}, undefined as never)), "body");
    assert.equal(await refused(holdfast.lead("a", { mode: "shared" } as never, () => 1)), "mode");
    assert.throws(() => holdfast.elect("a", { waitMs: 1 } as never), { argument: "waitMs" });
  });
});

describe("elect", () => {
  test("gives one term after another, and each back before the next", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const tokens: number[] = [];
    const loop = (async (): Promise<void> => {
      for await (const term of holdfast.elect("scheduler")) {
        tokens.push(term.token);
        assert.equal(world.cluster.machine.holdCount, 1);
        if (tokens.length === 3) break;
      }
    })();
    await world.within(1_000, loop);
    assert.equal(tokens.length, 3);
    assert.deepEqual(
      [...tokens].sort((a, b) => a - b),
      tokens,
    );
    assert.equal(world.cluster.machine.lockCount, 0);
  });

  test("gives the term back when the loop's body throws, and takes a resignation", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const failure = new Error("in the loop");
    const loop = outcomeOf(
      (async (): Promise<void> => {
        for await (const term of holdfast.elect("scheduler")) {
          assert.equal(await term.resign(), "released");
          assert.equal(term.state, "released");
          throw failure;
        }
      })(),
    );
    await world.clock.advance(100);
    assert.equal(loop.error, failure);
    assert.equal(world.cluster.machine.lockCount, 0);
  });

  test("throws the signal's reason when that aborts a campaign", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const reason = new Error("enough");
    const first = await world.within(
      100,
      holdfast
        .elect("scheduler", { signal: AbortSignal.abort(reason) })
        .next()
        .catch((error: unknown) => error),
    );
    assert.equal(first, reason);
  });
});
