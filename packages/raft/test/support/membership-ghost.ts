/** What an all-seeing observer checks of configurations (docs/testing.md, invariant 9). */
import assert from "node:assert/strict";
import type { ChangeOutcome, Configuration, Entry, Index, LogBase, Member, Message, NodeId } from "../../src/index.js";
import { testCodec } from "./codec.js";
import type { TestNode } from "./node.js";

export class MembershipGhost {
  /** Changes asked for that have not ended. A crash of the node takes the answer with it. */
  readonly #open = new Set<number>();
  readonly #removed = new Set<NodeId>();
  /** By chain value: what is known of a configuration entry and of the one before it never changes. */
  readonly #checked = new Set<number>();
  /** What a node was last found to go by, and what that has to be: as long as both are the same objects, it is right. */
  readonly #right = new WeakMap<Configuration, Entry | LogBase>();

  /** The configuration in force is the last one in the log; one at a time; each step is one that two majorities can't part on. */
  onStepped(node: TestNode, committed: number): void {
    const { raft } = node;
    let open = 0;
    let last: Entry | null = null;
    for (let index = raft.lastIndex; index > raft.logBase.position.index; index = (index - 1) as Index) {
      const entry = raft.entryAt(index);
      if (entry?.kind !== "configuration") continue;
      last ??= entry;
      if (index <= committed) break;
      open += 1;
    }
    assert.ok(open <= 1, `${node.id} has ${open} configurations in its log that are not committed`);
    const source = last ?? raft.logBase;
    if (this.#right.get(raft.configuration) !== source) this.#checkConfiguration(node, last);
    this.#right.set(raft.configuration, source);
    if (node.status?.isRemoved === true) assert.ok(this.#removed.has(node.id), `${node.id} believes to be removed`);
  }

  #checkConfiguration(node: TestNode, last: Entry | null): void {
    const { raft } = node;
    const expected = last === null ? raft.logBase.configuration : testCodec.decodeConfiguration(last.payload);
    assert.deepEqual(raft.configuration, expected, `the configuration of ${node.id} is the last one in its log`);
    if (last === null || this.#checked.has(last.chain)) return;
    this.#checked.add(last.chain);
    checkStep(configurationBefore(node, last), expected);
  }

  onCommitted(entry: Entry): void {
    if (entry.kind !== "configuration") return;
    const { voters, outgoing, learners, removed } = testCodec.decodeConfiguration(entry.payload);
    for (const id of removed) this.#removed.add(id);
    const back = [...voters, ...outgoing, ...learners].find(({ id }) => this.#removed.has(id));
    assert.equal(back, undefined, `${back?.id} comes back`);
    for (const id of this.#removed) assert.ok(removed.includes(id), `it is forgotten that ${id} was removed`);
  }

  /** A committed configuration lists it as removed: its process may be ended for ever. */
  isRemoved(id: NodeId): boolean {
    return this.#removed.has(id);
  }

  /** A removed node that knows it takes no part any more. */
  onSent(node: TestNode, message: Message): void {
    if (!node.raft.status().isRemoved) return;
    const takesPart =
      message.kind === "preVote" ||
      message.kind === "vote" ||
      ((message.kind === "preVoteAnswer" || message.kind === "voteAnswer") && message.granted);
    assert.ok(!takesPart, `${node.id} was removed, and sends ${message.kind}`);
  }

  onAsked(id: number): void {
    this.#open.add(id);
  }

  onOutcome(outcome: ChangeOutcome): void {
    assert.ok(this.#open.has(outcome.id), `change ${outcome.id} was asked for, and has not ended yet`);
    if (outcome.kind !== "appended") this.#open.delete(outcome.id);
  }
}

/** Any two neighbours have no majorities without a common node: the voters stay, or one of the two is joint and holds the other's. */
function checkStep(before: Configuration, after: Configuration): void {
  const text = JSON.stringify([before, after]);
  if (after.outgoing.length > 0) {
    assert.equal(before.outgoing.length, 0, `from joint to joint: ${text}`);
    assert.deepEqual(idsOf(after.outgoing), idsOf(before.voters), text);
  } else {
    assert.deepEqual(idsOf(after.voters), idsOf(before.voters), text);
  }
  const gone = [...before.voters, ...before.outgoing, ...before.learners].filter(
    ({ id }) => ![...after.voters, ...after.outgoing, ...after.learners].some((member) => member.id === id),
  );
  for (const id of [...before.removed, ...idsOf(gone)])
    assert.ok(after.removed.includes(id), `no trace of ${id}: ${text}`);
}

function configurationBefore({ raft }: TestNode, entry: Entry): Configuration {
  for (let index = entry.index - 1; index > raft.logBase.position.index; index -= 1) {
    const earlier = raft.entryAt(index as Index);
    if (earlier?.kind === "configuration") return testCodec.decodeConfiguration(earlier.payload);
  }
  return raft.logBase.configuration;
}

function idsOf(members: readonly Member[]): NodeId[] {
  return members.map((member) => member.id).sort();
}
