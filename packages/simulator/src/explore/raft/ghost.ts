/** What an observer of the whole cluster remembers: who has led, and what was committed. Equal memories are one object. */
import type { Entry } from "@holdfast/raft";
import type { LocalState, Transition } from "./local.js";

export interface Ghost {
  readonly number: number;
  /** By term: which node has led in it, or undefined. */
  readonly leaders: readonly (number | undefined)[];
  /** By index, from 1 on: the chain value of what was committed there. */
  readonly committed: readonly number[];
  /** By index, from 1 on: the own term of that entry. The chain value vouches for it. */
  readonly terms: readonly number[];
}

export interface Judgement {
  readonly ghost: Ghost;
  readonly violation: string | null;
}

export class Ghosts {
  readonly none: Ghost;
  readonly #ghosts = new Map<string, Ghost>();

  constructor() {
    this.none = this.#ghostOf([], [], []);
  }

  /** What the step of one node means for all. `nodes` is the cluster after it. */
  judge(ghost: Ghost, before: LocalState, step: Transition, nodes: readonly LocalState[]): Judgement {
    const { next, leads } = step;
    let now = ghost;
    let violation: string | null = null;
    if (leads !== null) {
      violation ??= brokenLead(ghost, next, leads);
      const leaders = [...ghost.leaders];
      leaders[leads] = next.at;
      now = this.#ghostOf(leaders, now.committed, now.terms);
    }
    if (next.log !== before.log) violation ??= brokenMatching(next, nodes);
    if (next.commitIndex > 0) {
      violation ??= brokenCommit(now, before, next);
      if (next.commitIndex > now.committed.length) {
        const entries = next.log.slice(0, next.commitIndex);
        now = this.#ghostOf(now.leaders, entries.map(chainOf), entries.map(termOf));
      }
    }
    violation ??= brokenApplied(now, step.applied);
    if (now.committed.length > 0 && (now !== ghost || next.disk.entries !== before.disk.entries))
      violation ??= brokenDurability(now, nodes);
    return { ghost: now, violation };
  }

  #ghostOf(leaders: Ghost["leaders"], committed: readonly number[], terms: readonly number[]): Ghost {
    const key = `${leaders.join()}|${committed.join()}`;
    let ghost = this.#ghosts.get(key);
    if (ghost === undefined) {
      ghost = { number: this.#ghosts.size, leaders, committed, terms };
      this.#ghosts.set(key, ghost);
    }
    return ghost;
  }
}

/**
 * Election safety, and leader completeness: an old candidate may still win its term after a later one has committed, so only entries of
 * earlier terms count. They were committed before, in these scopes of at most two terms.
 */
function brokenLead(ghost: Ghost, node: LocalState, term: number): string | null {
  const other = ghost.leaders[term];
  if (other !== undefined && other !== node.at) return `at most one leader in term ${term}`;
  const last = ghost.terms.filter((committed) => committed < term).length;
  if (last > 0 && node.log[last - 1]?.chain !== ghost.committed[last - 1])
    return `the leader of term ${term} has all that was committed`;
  return null;
}

/** Equal index and term: equal logs up to there. The disks count as well. */
function brokenMatching(node: LocalState, nodes: readonly LocalState[]): string | null {
  for (const other of nodes) {
    if (other === node) continue;
    for (const log of [other.log, other.disk.entries]) {
      for (const [at, { term, chain }] of node.log.entries()) {
        const their = log[at];
        if (their !== undefined && their.term === term && their.chain !== chain) return `logs match at index ${at + 1}`;
      }
    }
  }
  return null;
}

/** What is committed is so once; a leader counts entries of its own term only. */
function brokenCommit(ghost: Ghost, before: LocalState, node: LocalState): string | null {
  const both = Math.min(node.commitIndex, ghost.committed.length);
  for (let at = 0; at < both; at += 1) {
    if (node.log[at]?.chain !== ghost.committed[at]) return `entry ${at + 1} is committed once`;
  }
  if (node.role !== "leader" || before.role !== "leader" || node.commitIndex <= before.commitIndex) return null;
  return node.log[node.commitIndex - 1]?.term === node.term
    ? null
    : "a leader commits by counting entries of its own term";
}

/** State machine safety. */
function brokenApplied(ghost: Ghost, applied: readonly Entry[]): string | null {
  for (const { index, chain } of applied) {
    if (ghost.committed[index - 1] !== chain) return `entry ${index} is applied as it was committed`;
  }
  return null;
}

/** What is committed is on the disks of a quorum, from then on. */
function brokenDurability(ghost: Ghost, nodes: readonly LocalState[]): string | null {
  const last = ghost.committed.length;
  const holders = nodes.filter(({ disk }) => disk.entries[last - 1]?.chain === ghost.committed[last - 1]);
  return 2 * holders.length > nodes.length ? null : `entry ${last} is committed and durable on ${holders.length}`;
}

function chainOf({ chain }: Entry): number {
  return chain;
}

function termOf({ term }: Entry): number {
  return term;
}
