/** Rule 9: the configuration in force is the last one in the log, one change at a time, and majorities of neighbours intersect. */
import type { Configuration, NodeId } from "@holdfast/raft";
import type { GhostLog } from "./ghost-log.js";
import { demand } from "./invariant-error.js";
import { isQuorum } from "./quorums.js";
import type { Life, WatchedNode } from "./watched-node.js";

const rule = "configuration";

/** Looks at the node's configuration when it, or an entry that changes it, is another than at the last event. */
export function checkConfiguration(node: WatchedNode, life: Life, ghost: GhostLog): void {
  const { raft } = life.probe;
  const { configurations } = life;
  const newest = configurations.at(-1);
  if (newest === undefined) {
    // Nearly always: a look at one object.
    demand(raft.configuration === raft.logBase.configuration, rule, () => {
      return `${node.id} has no configuration in its log, and another in force than its base's`;
    });
    life.configuration = raft.configuration;
    return;
  }
  // What is below the commit point and was committed as it stands here is settled, whether the node knows it or not.
  const open = configurations.filter(({ index, chain }) => {
    return index > ghost.commitPoint || (ghost.committedChain(index) ?? chain) !== chain;
  });
  demand(open.length <= 1, rule, () => {
    return `${node.id} has ${open.length} uncommitted configurations, at ${open.map(({ index }) => index).join(", ")}`;
  });
  if (life.configuration === raft.configuration) return;
  life.configuration = raft.configuration;
  const chained = [
    raft.logBase.configuration,
    ...configurations.map((each) => life.probe.codec.decodeConfiguration(each.payload)),
  ];
  const last = chained[chained.length - 1] ?? raft.logBase.configuration;
  demand(textOf(last) === textOf(raft.configuration), rule, () => {
    return `${node.id} has ${textOf(raft.configuration)} in force, the last in its log is ${textOf(last)}`;
  });
  for (const [at, next] of chained.entries()) {
    const previous = chained[at - 1];
    if (previous !== undefined) checkStep(node, previous, next);
  }
}

function checkStep(node: WatchedNode, before: Configuration, after: Configuration): void {
  demand(doMajoritiesMeet(before, after), rule, () => {
    return `${node.id} goes from ${textOf(before)} to ${textOf(after)}: both can decide without each other`;
  });
  const back = [...after.voters, ...after.learners].find(({ id }) => after.removed.includes(id));
  demand(back === undefined, rule, () => `${node.id} counts ${back?.id}, which was removed`);
  const forgotten = before.removed.find((id) => !after.removed.includes(id));
  demand(forgotten === undefined, rule, () => `${node.id} forgets that ${forgotten} was removed`);
}

/** Tries all ways to part the voters in two: in none does each side make a majority. */
export function doMajoritiesMeet(a: Configuration, b: Configuration): boolean {
  const ids = [...new Set([a, b].flatMap(({ voters, outgoing }) => [...voters, ...outgoing].map(({ id }) => id)))];
  const numberOf = new Map<NodeId, number>(ids.map((id, at) => [id, at]));
  for (let side = 0; side < 2 ** ids.length; side += 1) {
    const isInside = (id: NodeId): boolean => Math.floor(side / 2 ** (numberOf.get(id) ?? 0)) % 2 === 1;
    if (isQuorum(a, isInside) && isQuorum(b, (id) => !isInside(id))) return false;
  }
  return true;
}

function textOf({ voters, outgoing, learners, removed }: Configuration): string {
  const parts = [voters, outgoing, learners].map((members) => members.map(({ id, instance }) => `${id}/${instance}`));
  return JSON.stringify([...parts, removed]);
}
