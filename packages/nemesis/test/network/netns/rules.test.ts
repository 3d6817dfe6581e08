import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Rules, WayState } from "../../../src/network/netns/filter.js";
import { iptablesRules } from "../../../src/network/netns/iptables-rules.js";
import { nftRules } from "../../../src/network/netns/nft-rules.js";
import { NetnsError } from "../../../src/network/netns/netns-error.js";
import { checkShape, shapeCommands } from "../../../src/network/netns/queues.js";

const states: Readonly<Record<string, WayState>> = {
  open: { isCut: false, lossFraction: 0 },
  lossy: { isCut: false, lossFraction: 0.25 },
  lost: { isCut: false, lossFraction: 1 },
  cut: { isCut: true, lossFraction: 0.25 },
};

function inputs(rules: Rules): Record<string, string[]> {
  const entries = Object.entries(states).map(([name, state]) => {
    return [name, rules.change(3, state).input.trim().split("\n")] as const;
  });
  return Object.fromEntries(entries);
}

describe("the rules of a way", () => {
  it("in the words of nft: one transaction, and nothing is counted that isn't let in", () => {
    const flush = "flush chain inet ways way_3";
    const drop = "add rule inet ways way_3 drop";
    const count = "add rule inet ways way_3 counter name passed_3";
    assert.deepEqual(inputs(nftRules), {
      open: [flush, count],
      lossy: [flush, "add rule inet ways way_3 numgen random mod 1000000 < 250000 drop", count],
      lost: [flush, drop],
      cut: [flush, drop],
    });
  });

  it("in the words of iptables: the same", () => {
    const lines = (...rules: string[]): string[] => ["*filter", ":way_3 - [0:0]", ...rules, "COMMIT"];
    const loss = (share: string): string => `-A way_3 -m statistic --mode random --probability ${share} -j DROP`;
    assert.deepEqual(inputs(iptablesRules), {
      open: lines("-A way_3 -j passed_3"),
      lossy: lines(loss("0.250000"), "-A way_3 -j passed_3"),
      lost: lines(loss("1.000000"), "-A way_3 -j passed_3"),
      cut: lines("-A way_3 -j DROP"),
    });
  });

  it("read the counters that the tools print", () => {
    const nft = "table inet ways {\n\tcounter passed_3 {\n\t\tpackets 12 bytes 3456\n\t}\n}\n";
    assert.equal(nftRules.counted(nft), 3_456);
    const head = "    pkts      bytes target     prot opt in     out     source               destination\n";
    const row = "      12     3456 ACCEPT     0    --  *      *       0.0.0.0/0            0.0.0.0/0\n";
    assert.equal(iptablesRules.counted(`Chain passed_3 (1 references)\n${head}${row}`), 3_456);
    for (const rules of [nftRules, iptablesRules]) assert.equal(rules.counted("something else"), null);
  });
});

describe("the queue of a way", () => {
  it("holds a rate, a delay, or both", () => {
    const rate = shapeCommands("eth0", 11, { bytesPerSecond: 50_000 }, true).map((words) => words.join(" "));
    assert.deepEqual(rate, [
      "tc class add dev eth0 parent 1: classid 1:b htb rate 50000bps burst 3028 cburst 3028",
      "tc qdisc replace dev eth0 parent 1:b bfifo limit 30280",
    ]);
    const delay = shapeCommands("eth0", 11, { delayMs: 100, jitterMs: 40 }, false).map((words) => words.join(" "));
    assert.match(delay[0] ?? "", /^tc class change .* rate 1250000000bps /);
    // From 100 to 140 ms: netem's jitter goes both ways.
    assert.equal(delay[1], "tc qdisc replace dev eth0 parent 1:b netem limit 100000 delay 120000us 20000us");
  });

  it("refuses numbers that make no sense, by name", () => {
    for (const [name, value] of [
      ["delayMs", 60_001],
      ["jitterMs", -1],
      ["lossFraction", Number.NaN],
      ["bytesPerSecond", 999],
    ] as const) {
      const isNamed = (error: unknown): boolean => {
        return error instanceof NetnsError && error.code === "bad_argument" && error.message.startsWith(`${name} is `);
      };
      assert.throws(() => checkShape({ [name]: value }), isNamed);
    }
    checkShape({ delayMs: 0, jitterMs: 60_000, lossFraction: 1, bytesPerSecond: 1_000 });
  });
});
