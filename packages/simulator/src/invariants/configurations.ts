/**
 * Rule 9: the configuration in force is the last one in the log, one change at a time, majorities of neighbours intersect, and who was
 * removed never comes back; nor does a snapshot or a restart bring another configuration than was committed.
 */
import type { Configuration, Entry, EntryCodec, LogBase, Member, NodeId } from "@holdfast/raft";
import type { GhostLog } from "./ghost-log.js";
import { demand } from "./invariant-error.js";
import { isQuorum } from "./quorums.js";
import type { ConfigurationEntry, Life, WatchedNode } from "./watched-node.js";

const rule = "configuration";

interface Placed {
  readonly index: number;
  readonly configuration: Configuration;
}

export class Configurations {
  readonly #ghost: GhostLog;
  /** Committed ones in order; the first stands before the log. */
  readonly #committed: Placed[] = [];
  /** Of any node's log, by index and chain value: each may still come to be committed. */
  readonly #open = new Map<string, Placed>();

  constructor(ghost: GhostLog) {
    this.#ghost = ghost;
  }

  /** The newest committed one; null before anybody has one. */
  get committed(): Configuration | null {
    return this.#committed.at(-1)?.configuration ?? null;
  }

  /** All that may be in force at a node that can win an election, or can be followed: the newest committed one, and later ones. */
  get live(): readonly Configuration[] {
    const { committed } = this;
    return committed === null ? [] : [committed, ...[...this.#open.values()].map((each) => each.configuration)];
  }

  /** Whose removal is committed at `index` or below. */
  isRemovedAt(id: NodeId, index: number): boolean {
    return this.#at(index)?.configuration.removed.includes(id) === true;
  }

  /** Who had a vote by what was committed at `index` or below. */
  hadVoteAt(id: NodeId, index: number): boolean {
    const { voters, outgoing } = this.#at(index)?.configuration ?? { voters: [], outgoing: [] };
    return [...voters, ...outgoing].some((voter) => voter.id === id);
  }

  onCommitted({ index, kind, payload }: Entry, codec: EntryCodec): void {
    if (kind === "configuration") this.#committed.push({ index, configuration: codec.decodeConfiguration(payload) });
    for (const [key, placed] of this.#open) if (placed.index <= index) this.#open.delete(key);
  }

  /** Looks at the node's configuration when it, or an entry that changes it, is another than at the last event. */
  check(node: WatchedNode, life: Life): void {
    const { raft } = life.probe;
    this.#checkBase(node, raft.logBase);
    if (raft.base !== raft.logBase) this.#checkBase(node, raft.base);
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
    this.#checkOpen(node, configurations);
    if (life.configuration === raft.configuration) return;
    life.configuration = raft.configuration;
    this.#checkChain(node, life);
  }

  /** What is below the commit point and was committed as it stands here is settled, whether the node knows it or not. */
  #checkOpen(node: WatchedNode, configurations: readonly ConfigurationEntry[]): void {
    const open = configurations.filter(({ index, chain }) => {
      return index > this.#ghost.commitPoint || (this.#ghost.committedChain(index) ?? chain) !== chain;
    });
    demand(open.length <= 1, rule, () => {
      return `${node.id} has ${open.length} uncommitted configurations, at ${open.map(({ index }) => index).join(", ")}`;
    });
  }

  #checkChain(node: WatchedNode, life: Life): void {
    const { raft, codec } = life.probe;
    const chained: Placed[] = [{ index: raft.logBase.position.index, configuration: raft.logBase.configuration }];
    for (const { index, chain, payload } of life.configurations) {
      const placed = { index, configuration: codec.decodeConfiguration(payload) };
      if (index > this.#ghost.commitPoint) this.#open.set(`${index} ${chain}`, placed);
      chained.push(placed);
    }
    const last = chained[chained.length - 1]?.configuration ?? raft.logBase.configuration;
    demand(textOf(last) === textOf(raft.configuration), rule, () => {
      return `${node.id} has ${textOf(raft.configuration)} in force, the last in its log is ${textOf(last)}`;
    });
    for (const [at, next] of chained.entries()) {
      const previous = chained[at - 1];
      if (previous !== undefined) checkStep(node, previous.configuration, next.configuration);
    }
  }

  /** A base bears what was in force there: tombstones too. */
  #checkBase(node: WatchedNode, { position, configuration }: LogBase): void {
    if (node.checkedConfigurations.has(configuration)) return;
    node.checkedConfigurations.add(configuration);
    if (this.#committed.length === 0) this.#committed.push({ index: position.index, configuration });
    const text = textOf(configuration);
    // A node that was added begins with what was committed at the member that has called it first: an open one may be cut off again.
    const isBegin = position.term === 0 && this.#committed.some((each) => textOf(each.configuration) === text);
    const known = this.#at(position.index);
    demand(isBegin || (known !== null && textOf(known.configuration) === text), rule, () => {
      const committed = known === null ? "nothing" : textOf(known.configuration);
      return `${node.id} begins behind ${position.index} with ${text}, committed was ${committed}`;
    });
  }

  #at(index: number): Placed | null {
    return this.#committed.findLast((each) => each.index <= index) ?? null;
  }
}

function checkStep(node: WatchedNode, before: Configuration, after: Configuration): void {
  const step = (): string => `${node.id} goes from ${textOf(before)} to ${textOf(after)}`;
  demand(doMajoritiesMeet(before, after), rule, () => `${step()}: both can decide without each other`);
  const former = before.outgoing.length > 0 ? before.voters : after.outgoing;
  const isJoined = before.outgoing.length > 0 || after.outgoing.length > 0;
  const mustBe = before.outgoing.length > 0 ? after.voters : before.voters;
  demand(isJoined ? areSame(former, mustBe) : areSame(before.voters, after.voters), rule, () => {
    return `${step()}: other voters without a joint configuration of both`;
  });
  demand(before.outgoing.length === 0 || after.outgoing.length === 0, rule, () => `${step()}: two changes in one`);
  const members = membersOf(after);
  const back = members.find((id) => after.removed.includes(id));
  demand(back === undefined, rule, () => `${node.id} counts ${back}, which was removed`);
  const forgotten = before.removed.find((id) => !after.removed.includes(id));
  demand(forgotten === undefined, rule, () => `${node.id} forgets that ${forgotten} was removed`);
  const lost = membersOf(before).find((id) => !members.includes(id) && !after.removed.includes(id));
  demand(lost === undefined, rule, () => `${step()}: ${lost} is gone, and could come back`);
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

function membersOf({ voters, outgoing, learners }: Configuration): NodeId[] {
  return [...voters, ...outgoing, ...learners].map(({ id }) => id);
}

function areSame(a: readonly Member[], b: readonly Member[]): boolean {
  const text = (members: readonly Member[]): string => members.map(({ id, instance }) => `${id}/${instance}`).join();
  return text(a) === text(b);
}

function textOf({ voters, outgoing, learners, removed }: Configuration): string {
  const parts = [voters, outgoing, learners].map((members) => members.map(({ id, instance }) => `${id}/${instance}`));
  return JSON.stringify([...parts, removed]);
}
