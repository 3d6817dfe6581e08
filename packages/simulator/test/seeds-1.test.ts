import assert from "node:assert/strict";
import { test } from "node:test";
import { faultNames } from "../src/run/fault-kinds.js";
import { runSeeds } from "../src/seeds.js";

test("seeds 1 to 150 keep every promise, and get on after their faults", async () => {
  const report = await runSeeds(1, 150);
  const count = (name: string): number => report.countOf(name);
  // Tame runs would pass too.
  const bit = faultNames.filter((kind) => count(`bit: ${kind}`) > 0);
  assert.ok(bit.length > faultNames.length * 0.8, `only these faults have bitten: ${bit.join(", ")}`);
  for (const rule of ["exclusion", "fifo", "token-order", "early-expiry", "hold-overlap", "guard", "linearizability"])
    assert.ok(count(`judged: ${rule}`) > 150, `${rule} was judged ${count(`judged: ${rule}`)} times`);
  assert.ok(count("twin: update lost") > 0, "without a guard updates are lost, or the faults are too weak");
  assert.ok(report.promptShare > 0.9, "elections after the healing take longer than chance explains");
});
