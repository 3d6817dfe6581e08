/** The lease rules in all their small cases, over the real lease keeper and lock machine; and that the search would find what is wrong. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { LeaseKeeper, LeaseKeeperHost } from "@holdfast/server/parts";
import { exploreLease, rules, scopes } from "../src/explore/lease/index.js";
import type { LeaseResult, LeaseScope, Planted, Rule } from "../src/explore/lease/index.js";
import { reportLease } from "../src/explore/lease/report.js";
import {
  LiteralApplied,
  MarksAtHalf,
  Secretive,
  Unconditional,
  Unsuspecting,
  withoutRoundForExpiries,
  withoutRounds,
} from "./explore-lease-planted.js";

const statesMax = 100_000;

function scope(name: string): LeaseScope {
  const found = scopes[name];
  assert.ok(found !== undefined);
  return found;
}

function holds(name: string): LeaseResult {
  const result = exploreLease({ scope: scope(name), statesMax, hasTwins: true });
  assert.equal(result.violation, null, JSON.stringify(result.violation?.path));
  assert.ok(result.isComplete, "the whole scope was explored");
  return result;
}

function breaks(name: string, planted: Planted, rule: Rule): readonly string[] {
  const { violation } = exploreLease({ scope: scope(name), statesMax, planted });
  assert.equal(violation?.rule, rules[rule]);
  return violation?.path ?? [];
}

describe("lease rules, explored", () => {
  it("a live client that renews in time keeps its session, whoever leads", () => {
    assert.ok(holds("live").judged.acknowledgements > 0);
  });

  it("a dead client's session ends within two TTL, with a leader change every TTL/2", () => {
    const { longestDead, judged } = holds("dead");
    assert.ok(judged.ends > 0);
    assert.ok(longestDead > 8 && longestDead <= 16, `it took ${longestDead}`);
  });

  it("no session ends while its client may believe that it lives", () => {
    const { judged } = holds("safety");
    assert.ok(judged.ends > 0 && judged.acknowledgements > 0 && judged.refusedExpiries > 0);
  });

  it("nor while a deposed leader still hears the client", () => {
    assert.ok(holds("safety-deposed").judged.ends > 0);
  });

  it("nor with stuck loops and failed transfers", () => {
    assert.ok(holds("safety-troubled").judged.ends > 0);
  });
});

describe("lease rules, planted bugs", () => {
  it("acknowledging suspects is found by the rule, and by what it leads to", () => {
    const keeper = (host: LeaseKeeperHost): LeaseKeeper => new Unsuspecting(host);
    assert.ok(breaks("safety", { keeper }, "suspected").length <= 12);
    assert.ok(breaks("safety", { keeper, without: ["suspected"] }, "early").length > 0);
  });

  it("looking at the applied count only is found by the rule, and by what it leads to", () => {
    const keeper = (host: LeaseKeeperHost): LeaseKeeper => new LiteralApplied(host);
    assert.ok(breaks("safety", { keeper }, "suspected").length <= 12);
    assert.ok(breaks("safety", { keeper, without: ["suspected"] }, "early").length > 0);
  });

  it("acknowledging without a quorum round is found through the deposed leader", () => {
    breaks("safety-deposed", { keeper: withoutRounds, without: ["round", "suspected"] }, "early");
  });

  it("an expiry without a quorum round is found", () => {
    breaks("safety", { keeper: withoutRoundForExpiries }, "round");
  });

  it("an unconditional expiry is found", () => {
    breaks("safety", { machine: () => new Unconditional() }, "conditional");
  });

  it("a mark at TTL/2 only is found: the dead client lives for ever", () => {
    breaks("dead", { keeper: (host) => new MarksAtHalf(host) }, "immortal");
  });
});

describe("lease rules, keys", () => {
  it("a keeper with a state that its key doesn't show is no keeper to explore", () => {
    const planted = { keeper: (host: LeaseKeeperHost) => new Secretive(host) };
    assert.throws(() => exploreLease({ scope: scope("safety"), statesMax, planted, hasTwins: true }), /one key/);
  });
});

describe("lease rules, reported", () => {
  it("says what was explored, and which scopes there are", () => {
    const lines: string[] = [];
    const parts = { print: (line: string) => lines.push(line), nowMs: () => 0 };
    assert.equal(reportLease({ names: ["live"], statesMax, msMax: 1 }, parts), true);
    assert.match(lines.join("\n"), /^lease live: \d+ states .* complete .*\nno rule is broken/);
    assert.equal(reportLease({ names: ["none"], statesMax, msMax: 1 }, parts), false);
    assert.match(lines.at(-1) ?? "", /no scope is named none; there are live, dead/);
  });
});
