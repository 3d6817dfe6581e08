/**
 * One seed, one run: a cluster under random faults, checked after every event, then healed and asked for progress. Which faults occur, and
 * how often, is drawn from the seed too (a run without a kind of fault reaches states that others don't).
 */
import assert from "node:assert/strict";
import { Cluster, generousLimits } from "./cluster.js";
import { configurationOf, testCodec } from "./codec.js";
import { drawChange } from "./random-change.js";
import type { Output } from "../../src/index.js";
import type { TestNode } from "./node.js";
import { SeededRandom } from "./random.js";

const electionTimeoutMsMin = 100;

export interface RunStatistics {
  terms: number;
  committed: number;
  crashes: number;
  installs: number;
  confirmed: number;
  transfers: number;
  /** Changes of membership that were asked for and completed; joint configurations that another leader finished; nodes that learnt of their removal. */
  changes: number;
  inherited: number;
  removals: number;
}

interface Action {
  readonly weight: number;
  readonly run: () => void;
}

interface Fault {
  readonly percent: number;
  readonly run: () => void;
}

export function noStatistics(): RunStatistics {
  const changed = { changes: 0, inherited: 0, removals: 0 };
  return { terms: 0, committed: 0, crashes: 0, installs: 0, confirmed: 0, transfers: 0, ...changed };
}

export class RandomRun {
  readonly #cluster: Cluster;
  readonly #random: SeededRandom;
  readonly #actions: readonly Action[];
  readonly #weightSum: number;
  readonly #faults: readonly Fault[];
  readonly #statistics: RunStatistics = noStatistics();
  readonly #isOrdered: boolean;
  readonly #firstIndex: number;
  readonly #focus: "faults" | "members";
  /** No members at first. */
  readonly #spareIds: readonly string[];
  readonly #slowLinks = new Set<string>();
  #proposed = 0;
  #jointTerm = 0;

  /** members: fewer faults, so that changes of membership get through, and many of these. */
  constructor(seed: number, focus: "faults" | "members" = "faults") {
    this.#focus = focus;
    const random = new SeededRandom(seed ^ 0x5bd1e995);
    this.#random = random;
    const ids = ["n1", "n2", "n3", "n4", "n5"].slice(0, random.pick([3, 3, 5]));
    const isJoint = ids.length === 5 && random.chance(30);
    const learners = random.chance(20) ? ["n6"] : [];
    this.#spareIds = ["n6", "n7", "n8", "n9"].filter((id) => !learners.includes(id));
    this.#firstIndex = random.pick([1, 1, 1_000]);
    this.#cluster = new Cluster({
      ids: [...ids, ...learners, ...this.#spareIds],
      // Sometimes in the middle of a change: n1 to n3 come in, n3 to n5 go out.
      configuration: isJoint
        ? configurationOf(ids.slice(0, 3), ids.slice(2), learners)
        : configurationOf(ids, [], learners),
      seed,
      electionTimeoutMsMin,
      heartbeatMs: 20,
      diskStallMs: 200,
      firstIndex: this.#firstIndex,
      limits: {
        ...generousLimits,
        uncommittedBytesMax: random.pick([150, 1_000_000]),
        appendsInFlightMax: 1 + random.integer(4),
        appendEntriesMax: random.pick([1, 2, 5, 100]),
        committedBytesPerOutputMax: random.pick([1, 100, 10_000]),
        trailingEntriesMax: random.pick([0, 0, 2, 20]),
      },
    });
    this.#isOrdered = random.chance(50);
    this.#actions = this.#drawActions();
    this.#weightSum = this.#actions.reduce((sum, { weight }) => sum + weight, 0);
    this.#faults = this.#drawFaults();
    for (const id of this.#cluster.nodes.keys()) this.#cluster.slowDisks.add(id);
    this.#cluster.onOutput = (_, output) => {
      if (output.install !== null) this.#statistics.installs += 1;
      this.#statistics.confirmed += output.confirmed.length;
      if (output.isRemoved) this.#statistics.removals += 1;
      this.#statistics.changes += output.changes.filter(({ kind }) => kind === "completed").length;
      this.#countInherited(output);
    };
  }

  run(events: number): RunStatistics {
    for (let count = 0; count < events; count += 1) this.#act();
    this.#heal();
    this.#statistics.terms = this.#cluster.ghost.leaderCount;
    this.#statistics.committed = this.#cluster.ghost.lastCommitted - this.#firstIndex;
    return this.#statistics;
  }

  /** The final configuration after a joint one of an earlier term. */
  #countInherited({ entries }: Output): void {
    for (const { kind, payload, term } of entries) {
      if (kind !== "configuration") continue;
      const { outgoing } = testCodec.decodeConfiguration(payload);
      if (outgoing.length > 0) this.#jointTerm = term;
      else if (this.#jointTerm < term && this.#jointTerm > 0) this.#statistics.inherited += 1;
      if (outgoing.length === 0) this.#jointTerm = 0;
    }
  }

  #act(): void {
    let kind = this.#random.integer(this.#weightSum);
    for (const { weight, run } of this.#actions) {
      kind -= weight;
      if (kind < 0) {
        run();
        return;
      }
    }
  }

  /** What goes on without any fault; how fast time passes against the network and the disks differs from seed to seed. */
  #drawActions(): Action[] {
    const random = this.#random;
    const isCalm = this.#focus === "members";
    return [
      { weight: 40 + random.integer(40), run: () => this.#deliver() },
      { weight: (isCalm ? 15 : 5) + random.integer(20), run: () => this.#finishWrites() },
      { weight: isCalm ? 1 + random.integer(5) : 2 + random.integer(10), run: () => this.#passTime() },
      { weight: 2 + random.integer(10), run: () => this.#propose() },
      { weight: 1 + random.integer(4), run: () => this.#cluster.confirm(this.#anyLeader()) },
      { weight: 2, run: () => this.#cluster.answerRead(this.#leaderOrAny()) },
      { weight: random.integer(3), run: () => this.#cluster.takeSnapshot(this.#leaderOrAny()) },
      { weight: isCalm ? 1 + random.integer(4) : 1, run: () => this.#changeMembers() },
      { weight: isCalm ? 1 + random.integer(4) : 2 + random.integer(15), run: () => this.#fault() },
    ];
  }

  #fault(): void {
    for (const { percent, run } of this.#faults) if (this.#random.chance(percent)) run();
  }

  #drawFaults(): Fault[] {
    const kinds: (() => void)[] = [
      () => this.#lose(),
      () => this.#repeat(),
      () => this.#crash(),
      () => this.#restart(),
      () => this.#cutLinks(),
      () => this.#slowLink(),
      () => this.#deafen(),
      () => this.#healLinks(),
      () => this.#healLinks(),
      () => this.#cluster.step(this.#any(), { kind: "peerReset", peer: this.#any() }),
      () => this.#peerGone(),
      () => this.#transfer(),
      () => this.#pause(),
    ];
    return kinds.flatMap((run) => (this.#random.chance(70) ? [{ percent: 1 + this.#random.integer(12), run }] : []));
  }

  #deliver(): void {
    const { packets } = this.#cluster;
    if (packets.length === 0) return;
    const at = this.#isOrdered ? 0 : this.#random.integer(Math.min(packets.length, 20));
    const packet = packets[at];
    if (packet === undefined) return;
    if (this.#slowLinks.has(`${packet.from}>${packet.to}`) && this.#random.chance(95)) {
      // Others overtake it: only the order within a link is kept when links are ordered.
      this.#deliverOther(packet.from, packet.to);
      return;
    }
    packets.splice(at, 1);
    this.#cluster.deliver(packet);
    if (packets.length > 500) packets.splice(0, 250);
  }

  #deliverOther(from: string, to: string): void {
    const { packets } = this.#cluster;
    const at = packets.findIndex((packet) => packet.from !== from || packet.to !== to);
    const [packet] = at === -1 ? [] : packets.splice(at, 1);
    if (packet !== undefined) this.#cluster.deliver(packet);
  }

  #finishWrites(): void {
    this.#cluster.finishWrites(this.#any(), 1 + this.#random.integer(4));
  }

  #passTime(): void {
    const { nowMs, upNodes } = this.#cluster;
    const dueMs = Math.min(...upNodes.map((node) => node.raft.nextDeadlineMs()), nowMs + 50);
    this.#cluster.advance(this.#random.chance(50) ? Math.max(dueMs - nowMs, 0) : this.#random.integer(10));
  }

  #propose(): void {
    this.#proposed += 1;
    const id = this.#leaderOrAny();
    const decidedInTerm = this.#random.chance(20) ? this.#cluster.node(id).raft.term : null;
    this.#cluster.propose(id, `p${this.#proposed}`, this.#random.chance(20), decidedInTerm);
  }

  #changeMembers(): void {
    const id = this.#anyLeader();
    const change = drawChange(this.#random, this.#cluster.node(id).raft, [...this.#cluster.nodes.keys()]);
    this.#cluster.changeMembers(id, change, this.#random.chance(40));
  }

  #lose(): void {
    const { packets } = this.#cluster;
    if (packets.length > 0) packets.splice(this.#random.integer(packets.length), 1 + this.#random.integer(3));
  }

  #repeat(): void {
    const { packets } = this.#cluster;
    if (packets.length > 0) packets.push(this.#random.pick(packets));
  }

  #crash(): void {
    const node = this.#cluster.node(this.#random.chance(40) ? this.#leaderOrAny() : this.#any());
    if (!node.isUp) return;
    this.#statistics.crashes += 1;
    const isInWrite = node.writes.length > 0 && this.#random.chance(50);
    if (isInWrite) node.finishWrites(1 + this.#random.integer(node.writes.length), this.#cluster.nowMs, true);
    else node.crash();
  }

  #restart(): void {
    const down = [...this.#cluster.nodes.values()].filter((node) => !node.isUp);
    if (down.length > 0) this.#cluster.restart(this.#random.pick(down).id);
  }

  /** One direction of a link, a whole link, or a node from all others. */
  #cutLinks(): void {
    const [a, b] = [this.#any(), this.#any()];
    const kind = this.#random.integer(3);
    const others = kind === 2 ? [...this.#cluster.nodes.keys()] : [b];
    for (const other of others) {
      this.#cluster.cut.add(`${a}>${other}`);
      if (kind > 0) this.#cluster.cut.add(`${other}>${a}`);
    }
  }

  #healLinks(): void {
    this.#cluster.cut.clear();
    this.#slowLinks.clear();
  }

  /** What a node sends arrives late, what it is sent is lost: it seems to live for long after it has been given up, and the reverse. */
  #slowLink(): void {
    const [a, b] = [this.#any(), this.#any()];
    this.#slowLinks.add(`${a}>${b}`);
    if (this.#random.chance(50)) this.#cluster.cut.add(`${b}>${a}`);
  }

  /** The leader sends in vain, and what it hears is old: it learns late that others have given it up. */
  #deafen(): void {
    const leader = this.#leaderOrAny();
    for (const other of this.#cluster.nodes.keys()) {
      this.#slowLinks.add(`${other}>${leader}`);
      this.#cluster.cut.add(`${leader}>${other}`);
    }
  }

  #peerGone(): void {
    const leader = this.#cluster.leader?.id ?? this.#any();
    this.#cluster.step(this.#any(), { kind: "peerGone", peer: leader });
  }

  #transfer(): void {
    this.#statistics.transfers += 1;
    this.#cluster.step(this.#leaderOrAny(), { kind: "transfer", to: this.#random.pick([null, this.#any()]) });
  }

  /** A stopped process: time passes, and nobody ticks it. */
  #pause(): void {
    this.#cluster.nowMs += this.#random.integer(3 * electionTimeoutMsMin);
  }

  /** Mostly whom the leader, or else anybody, counts as a member. */
  #any(): string {
    const nodes = [...this.#cluster.nodes.values()];
    if (this.#random.chance(10)) return this.#random.pick(nodes).id;
    return this.#random.pick(memberIdsOf(this.#cluster.leader ?? this.#random.pick(nodes)));
  }

  /** Anybody who believes to lead, deposed leaders as well. */
  #anyLeader(): string {
    const leaders = this.#cluster.upNodes.filter((node) => node.raft.role === "leader");
    return leaders.length > 0 ? this.#random.pick(leaders).id : this.#any();
  }

  #leaderOrAny(): string {
    return this.#random.chance(80) ? (this.#cluster.leader?.id ?? this.#any()) : this.#any();
  }

  /** All faults end. A leader within a few timeouts, everything committed everywhere, equal states, and the term at rest. */
  #heal(): void {
    const cluster = this.#cluster;
    this.#healLinks();
    cluster.slowDisks.clear();
    // Whoever was removed is switched off, or comes back without knowing it: both must do.
    const areRemovedUp = this.#random.chance(50);
    for (const node of cluster.nodes.values()) {
      const staysDown = !areRemovedUp && cluster.ghost.membership.isRemoved(node.id);
      if (staysDown) node.crash();
      else if (!node.isUp) cluster.restart(node.id);
    }
    // Lost appends must be noticed with and without the links' telling.
    const areLinksReset = this.#random.chance(50);
    for (const node of cluster.nodes.values()) {
      if (areLinksReset && node.isUp)
        for (const peer of cluster.nodes.keys()) cluster.step(node.id, { kind: "peerReset", peer });
      cluster.finishWrites(node.id);
    }
    // Long enough that a leader who has not heard a quorum for long finds that out.
    cluster.run(2 * electionTimeoutMsMin);
    const hasLeader = cluster.run(8 * electionTimeoutMsMin, () => cluster.leader !== null && isSettled(cluster));
    assert.ok(hasLeader, "a leader within ten election timeouts after healing");
    // The leader itself may be about to leave.
    cluster.run(4 * electionTimeoutMsMin, () => cluster.leader?.status?.isChanging === false && isSettled(cluster));
    const leader = cluster.leader as TestNode;
    const { term } = leader.raft;
    cluster.propose(leader.id, "last words", true);
    const confirmed = this.#statistics.confirmed;
    cluster.confirm(leader.id);
    const isAgreed = cluster.run(
      40 * electionTimeoutMsMin,
      () => areEqual(cluster) && this.#statistics.confirmed > confirmed,
    );
    assert.ok(isAgreed, "all members agree after healing");
    assert.equal((cluster.leader as TestNode).status?.isChanging, false, "no change is left half-done");
    cluster.run(10 * electionTimeoutMsMin);
    assert.equal(cluster.leader?.raft.term, term, "the term is at rest");
    assert.ok(leader.appliedTexts.includes("last words"), "a proposal is committed after healing");
  }
}

function isSettled(cluster: Cluster): boolean {
  const { leader } = cluster;
  if (leader === null || leader.status?.transferTo !== null) return false;
  return membersOf(cluster, leader).every(
    (node) => node.raft.term === leader.raft.term && node.raft.leader === leader.id,
  );
}

function membersOf(cluster: Cluster, leader: TestNode): TestNode[] {
  return memberIdsOf(leader).map((id) => cluster.node(id));
}

function memberIdsOf({ raft }: TestNode): string[] {
  const { voters, outgoing, learners } = raft.configuration;
  return [...new Set([...voters, ...outgoing, ...learners].map((member) => member.id))];
}

function areEqual(cluster: Cluster): boolean {
  const { leader } = cluster;
  if (leader === null) return false;
  const [first, ...others] = membersOf(cluster, leader);
  if (first === undefined || first.applied !== first.raft.lastIndex) return false;
  return others.every((node) => node.applied === first.applied && node.hash === first.hash);
}
