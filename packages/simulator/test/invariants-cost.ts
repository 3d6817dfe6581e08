/** What the watch costs: microseconds of one afterEvent over real cores in a steady cluster, clock reading included. */
import { CoreCluster } from "./invariants-cores.js";

/** Medians, for a machine that others use too: by role, and by whether the log has moved. */
export function medianCosts(isBusy: boolean, steps: number): ReadonlyMap<string, number> {
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
  for (let step = 0; step < steps; step += 1) {
    if (isBusy) cluster.propose();
    cluster.settle();
    cluster.passTime(5);
  }
  return new Map([...costs].map(([kind, list]) => [kind, medianOf(list)]));
}

function medianOf(list: readonly number[]): number {
  return [...list].sort((a, b) => a - b)[list.length >> 1] ?? 0;
}
