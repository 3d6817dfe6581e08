/** Rule 24: at rest all nodes have the same log, configuration and state. */
import { InvariantError } from "./invariant-error.js";
import { checkMachine } from "./states.js";
import type { WatchedNode } from "./watched-node.js";

export function assertConverged(nodes: readonly WatchedNode[]): void {
  const facts = nodes.map((node) => [node.id, factsOf(node)] as const);
  const [first] = facts;
  if (first === undefined) return;
  for (const [id, own] of facts) {
    for (const [name, value] of Object.entries(own)) {
      const other = first[1][name];
      if (value !== other) throw new InvariantError("convergence", `${name}: ${first[0]} ${other}, ${id} ${value}`);
    }
  }
}

function factsOf({ id, life }: WatchedNode): Readonly<Record<string, string | number>> {
  if (life === null || life.probe.isStopped) throw new InvariantError("convergence", `${id} does not run`);
  const { raft, machine, lastApplied } = life.probe;
  checkMachine(id, machine);
  return {
    term: raft.term,
    leader: raft.leader ?? "none",
    "last index": raft.lastIndex,
    "last chain value": raft.chainAt(raft.lastIndex) ?? "none",
    commitIndex: raft.commitIndex,
    lastApplied,
    configuration: JSON.stringify(raft.configuration),
    "state hash": machine.stateHash(),
  };
}
