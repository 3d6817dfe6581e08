/**
 * What the watch costs: microseconds of one afterEvent over real cores in a steady cluster, clock reading included. Medians and 90th
 * percentiles, for a machine that others use too. `node packages/simulator/dist/test/invariants-bench.js`.
 */
import { CoreCluster } from "./invariants-cores.js";

function measure(isBusy: boolean): ReadonlyMap<string, number[]> {
  const costs = new Map<string, number[]>();
  const seen = new Map<string, string>();
  const cluster = new CoreCluster(1);
  const { watch } = cluster;
  const afterEvent = watch.afterEvent.bind(watch);
  watch.afterEvent = (id) => {
    const raft = cluster.nodes.find((each) => each.id === id)?.raft;
    const facts = `${raft?.commitIndex} ${raft?.lastIndex} ${raft?.persistedIndex}`;
    const kind = `${raft?.role === "leader" ? "leader" : "follower"}, ${facts === seen.get(id) ? "unchanged" : "changed"}`;
    seen.set(id, facts);
    const beganMs = performance.now();
    afterEvent(id);
    const cost = (performance.now() - beganMs) * 1_000;
    const list = costs.get(kind);
    if (list === undefined) costs.set(kind, [cost]);
    else list.push(cost);
  };
  for (let step = 0; step < 3_000; step += 1) {
    if (isBusy) cluster.propose();
    cluster.settle();
    cluster.passTime(5);
  }
  return costs;
}

for (const isBusy of [false, true]) {
  measure(isBusy);
  for (const [kind, costs] of measure(isBusy)) {
    costs.sort((a, b) => a - b);
    const [median, high] = [0.5, 0.9].map((part) => (costs[Math.floor(part * costs.length)] ?? 0).toFixed(2));
    const mean = costs.reduce((sum, cost) => sum + cost, 0) / costs.length;
    const name = `${isBusy ? "busy" : "idle"} ${kind}`;
    console.log(`${name}: median ${median} us, 90 % ${high} us, mean ${mean.toFixed(2)} us, ${costs.length} events`);
  }
}
