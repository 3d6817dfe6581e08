/** The command line of the simulator. */
import { drawPlan } from "./run/plan.js";
import { run } from "./run/run.js";
const [first = 1, count = 1] = process.argv.slice(2).map(Number);
const began = process.cpuUsage();
let virtualMs = 0;
for (let seed = first; seed < first + count; seed += 1) {
  const result = await run(drawPlan(seed), { isShown: count === 1 });
  virtualMs += result.virtualMs;
  if (result.problems.length > 0) console.log(seed, result.problems.slice(0, 5));
  if (count === 1) {
    console.log(result.lines.map((l) => `${l.atMs.toFixed(1)} ${l.process}: ${l.text}`).join("\n").slice(-6000));
    console.log(result.hash, result.events, result.virtualMs, result.times, [...result.counts].map(([k, v]) => `${k}=${v}`).join(" "));
  }
}
const used = process.cpuUsage(began);
const ms = (used.user + used.system) / 1000;
console.log(`${(virtualMs / ms).toFixed(1)} virtual s per CPU s`, ms.toFixed(0), "ms");
