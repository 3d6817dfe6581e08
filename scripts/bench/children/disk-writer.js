/** Writes one synced batch after the other into a database of its own, as a node does, for as long as it is told; answers with the times. */
import { Level } from "level";
import { percentile } from "../statistics.js";

/** About an entry with its chain. */
const valueBytes = 200;

const database = new Level("database", { keyEncoding: "utf8", valueEncoding: "buffer" });
await database.open();
process.on("message", (/** @type {{ seconds: number }} */ { seconds }) => {
  void write(seconds);
});
process.send?.({ ready: 1 });

/** @param {number} seconds */
async function write(seconds) {
  const times = [];
  const value = Buffer.alloc(valueBytes, 1);
  for (const untilMs = performance.now() + seconds * 1_000; performance.now() < untilMs; ) {
    const startMs = performance.now();
    await database.batch([{ type: "put", key: String(times.length), value }], { sync: true });
    times.push(performance.now() - startMs);
  }
  process.send?.({ p50Ms: percentile(times, 0.5), p99Ms: percentile(times, 0.99) });
}
