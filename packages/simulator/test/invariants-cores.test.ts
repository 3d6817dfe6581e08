/** The watch over real cores under faults: silent over good ones, and quick to find what a faulty host does wrong. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { InvariantError } from "../src/invariants/invariant-error.js";
import { CoreCluster } from "./invariants-cores.js";
import type { Flaw } from "./invariants-cores.js";
import { medianCosts } from "./invariants-cost.js";

const seeds = 40;
const events = 1_500;

/** How many events it took; null when nothing was found. */
function eventsUntilFound(flaw: Flaw, rules: readonly string[]): number | null {
  let count = 0;
  for (let seed = 1; seed <= seeds; seed += 1) {
    const cluster = new CoreCluster(seed, flaw);
    try {
      for (let at = 0; at < events; at += 1, count += 1) cluster.act();
    } catch (error) {
      assert.ok(
        error instanceof InvariantError,
        `seed ${seed}: ${error instanceof Error ? error.stack : String(error)}`,
      );
      assert.ok(rules.includes(error.rule), `seed ${seed}: ${error.message}`);
      return count;
    }
  }
  return null;
}

describe("the watch over real cores", () => {
  it("finds nothing where nothing is wrong, and nodes at rest agree", () => {
    const totals = { committed: 0, leaders: 0, deposed: 0, restarts: 0 };
    for (let seed = 1; seed <= seeds; seed += 1) {
      const cluster = new CoreCluster(seed, "none", seed % 4 === 0 ? 5 : 3);
      for (let at = 0; at < events; at += 1) cluster.act();
      for (let rounds = 0; rounds < 60; rounds += 1) {
        cluster.settle();
        cluster.passTime(20);
      }
      cluster.settle();
      cluster.watch.assertConverged(cluster.nodes.map(({ id }) => id));
      for (const name of Object.keys(totals) as (keyof typeof totals)[]) totals[name] += cluster.counts[name];
    }
    // A run in which nothing happens proves nothing.
    assert.ok(totals.committed > 10 * seeds, `${totals.committed} entries`);
    assert.ok(totals.leaders > 1.5 * seeds, `${totals.leaders} leaders`);
    assert.ok(totals.deposed > seeds / 2, `${totals.deposed} deposed`);
    assert.ok(totals.restarts > 2 * seeds, `${totals.restarts} restarts`);
  });

  const flaws: readonly (readonly [Flaw, readonly string[]])[] = [
    ["sendsBeforeDisk", ["durable-promises"]],
    ["losesVotes", ["durable-promises"]],
    ["losesEntries", ["durable-promises", "commit-quorum", "match-index"]],
    ["skipsCommand", ["state-machine-safety"]],
    ["imaginesAnswers", ["quorum-contact"]],
  ];
  for (const [flaw, rules] of flaws) {
    it(`finds a host that ${flaw.replaceAll(/([A-Z])/g, " $1").toLowerCase()}`, () => {
      assert.notEqual(eventsUntilFound(flaw, rules), null, `not found in ${seeds} seeds`);
    });
  }

  it("costs microseconds an event", (context) => {
    medianCosts(true, 1_000);
    for (const [kind, us] of medianCosts(true, 1_000)) {
      context.diagnostic(`${kind}: ${us.toFixed(1)} us`);
      // Far above what it takes (1 to 10), for a machine that is busy with other things.
      assert.ok(us < 100, `${kind}: ${us} us`);
    }
  });
});
