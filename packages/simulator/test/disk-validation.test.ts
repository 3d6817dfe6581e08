/**
 * The model against the real thing: the same random writes go to both, and at random moments both crash. The real directory is copied
 * while its database is open, as a kill would leave it, or with its end torn, as a power loss would; what the real store then makes of
 * it must be what the model makes of the same crash. HOLDFAST_TRACES sets how many lives of a process are tried, HOLDFAST_SEED other ones; a
 * seed repeats all but the races between a copy and a write in flight.
 */
import { StorageError } from "@holdfast/storage";
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { Random } from "../src/random.js";
import { removeAll } from "./disk-real.js";
import { Twins } from "./disk-twins.js";

const lives = Number(process.env["HOLDFAST_TRACES"] ?? 150);
const seed = Number(process.env["HOLDFAST_SEED"] ?? 20_817);

after(removeAll);

test("after a crash at any moment the model finds what the real store finds", { timeout: 3_600_000 }, async (t) => {
  const twins = new Twins(new Random(seed));
  for (let life = 0; life < lives; life += 1) {
    try {
      await twins.live();
    } catch (error) {
      assert(!(error instanceof StorageError), `life ${life}: ${String(error)}`);
      throw new Error(`in life ${life} of HOLDFAST_SEED=${seed}: ${twins.last}`, { cause: error });
    }
  }
  const { seen, droppedByKill } = twins;
  t.diagnostic(JSON.stringify({ ...seen, droppedByKill }));
  if (lives < 150) return;
  for (const [what, count] of Object.entries(seen)) assert(count > 0, `${what} happened`);
});
