import { test } from "node:test";
import { runSeeds } from "../src/seeds.js";

test("seeds 151 to 300 keep every promise, and get on after their faults", async () => {
  await runSeeds(151, 300);
});
