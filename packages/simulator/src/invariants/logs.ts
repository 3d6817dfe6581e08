/** Rules 2, 3 and 8 on what a node's log has gained or lost since its last event; the rest of it was looked at before. */
import type { Entry, Index, Raft } from "@holdfast/raft";
import type { GhostLog } from "./ghost-log.js";
import { demand, InvariantError } from "./invariant-error.js";
import type { Life, WatchedNode } from "./watched-node.js";

export function checkLog(node: WatchedNode, life: Life, ghost: GhostLog): void {
  const { raft } = life.probe;
  const base = raft.logBase.position.index;
  const isKept = life.lastIndex < base || raft.chainAt(life.lastIndex) === life.lastChain;
  if (!isKept && life.role === "leader" && raft.role === "leader" && life.term === raft.term) {
    throw new InvariantError("leader-append-only", `${node.id} changes entry ${life.lastIndex} in term ${raft.term}`);
  }
  if (base !== life.baseIndex || life.status === null) checkBase(node, raft, ghost);
  const from = isKept ? Math.max(life.lastIndex, base) + 1 : firstNewIndex(raft, ghost);
  noteConfigurations(life, base);
  let previousTerm: number = raft.termAt((from - 1) as Index) ?? 0;
  for (let index = from; index <= raft.lastIndex; index += 1) {
    const entry = raft.entryAt(index as Index);
    demand(entry !== null && entry.index === index, "contiguity", () => `${node.id} has a hole at ${index}`);
    demand(entry.term >= previousTerm && entry.term <= raft.term, "contiguity", () => {
      return `${node.id} has entry ${index} of term ${entry.term} after ${previousTerm}, its term is ${raft.term}`;
    });
    previousTerm = entry.term;
    checkMatching(node, entry, ghost);
  }
}

/** Entries that change the configuration: those that still stand, and those that have come; what others have had counts like any. */
function noteConfigurations(life: Life, base: number): void {
  const { raft } = life.probe;
  const behind = life.configurations.filter(({ index }) => index > base);
  const standing = behind.filter(({ index, chain }) => raft.chainAt(index) === chain);
  life.truncatedConfigurations += behind.length - standing.length;
  const isKept = standing.length === behind.length && raft.chainAt(life.lastIndex) === life.lastChain;
  // Cut off, or all of it new: looked at from its beginning.
  const from = Math.max(isKept ? life.lastIndex : base, base) + 1;
  life.configurations = standing.filter(({ index }) => index < from);
  for (let index = from; index <= raft.lastIndex; index += 1) {
    const entry = raft.entryAt(index as Index);
    if (entry?.kind !== "configuration") continue;
    life.configurations.push({ index: entry.index, chain: entry.chain, payload: entry.payload });
  }
}

function checkMatching(node: WatchedNode, entry: Entry, ghost: GhostLog): void {
  const known = ghost.chainFor(entry.index, entry.term);
  if (known === null) ghost.noteEntry(entry);
  else if (known !== entry.chain) {
    throw new InvariantError("log-matching", `${node.id} has another entry ${entry.index} of term ${entry.term}`);
  }
}

/** Behind the last entry that anybody was seen to have: its chain value vouches for all before it. */
function firstNewIndex(raft: Raft, ghost: GhostLog): number {
  const base = raft.logBase.position.index;
  let index = raft.lastIndex;
  for (; index > base; index = (index - 1) as Index) {
    const chain = raft.chainAt(index);
    if (chain !== null && ghost.chainFor(index, raft.termAt(index) ?? 0) === chain) break;
  }
  return index + 1;
}

function checkBase(node: WatchedNode, raft: Raft, ghost: GhostLog): void {
  for (const { position, chain } of [raft.logBase, raft.base]) {
    demand(position.index <= ghost.commitPoint, "commit-agreement", () => {
      return `${node.id} has a snapshot at ${position.index}, committed is up to ${ghost.commitPoint}`;
    });
    const known = ghost.committedChain(position.index);
    demand(known === null || known === chain, "commit-agreement", () => {
      return `${node.id} has a snapshot of another entry ${position.index} than was committed`;
    });
  }
}
