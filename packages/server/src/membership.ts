/** Who belongs to the cluster, as far as this node's log says: for the links, for clients, and for whoever changes it. */
import type { VersionRange } from "@holdfast/lock";
import type {
  ChangeOutcome,
  Configuration,
  EntryCodec,
  Member,
  NodeId,
  Output,
  PeerStatus,
  Raft,
} from "@holdfast/raft";
import type { MemberRole, MembersView, MemberView, NodeAddress, Refusal } from "@holdfast/wire";
import type { PeerLinks } from "./ports.js";

/** What became of a change: the index at which the configuration asked for is committed, or why there is none. */
export type ChangeResult = { readonly kind: "completed"; readonly index: number } | Refusal;

export interface MembershipParts {
  readonly clusterId: string;
  readonly raft: Raft;
  readonly codec: EntryCodec;
  readonly links: Pick<PeerLinks, "noteConfiguration"> & {
    met(): ReadonlyMap<NodeId, { readonly versions: VersionRange }>;
  };
  /** Answers that take longer than this come from nobody. */
  readonly electionTimeoutMs: number;
  readonly versions: VersionRange;
  /** Of this node's newest snapshot. */
  snapshotChunks(index: number): number | null;
}

export class Membership {
  private readonly parts: MembershipParts;
  /** See `committed`. */
  private settled: Configuration;
  private lastChange = 0;
  private readonly waiting = new Map<number, (result: ChangeResult) => void>();

  constructor(parts: MembershipParts) {
    this.parts = parts;
    this.settled = parts.raft.base.configuration;
  }

  start(): void {
    this.tellLinks();
  }

  /** The newest configuration that is known to be committed. */
  get committed(): Configuration {
    return this.settled;
  }

  /** Before its committed entries are applied. */
  noteOutput({ install, committed, configuration, changes }: Output): void {
    const before = this.committed;
    if (install !== null) this.settled = install.configuration;
    const newest = committed.findLast((entry) => entry.kind === "configuration");
    if (newest !== undefined) this.settled = this.parts.codec.decodeConfiguration(newest.payload);
    for (const outcome of changes) this.settle(outcome);
    if (configuration !== null || this.committed !== before) this.tellLinks();
  }

  /** Number of the changeMembers event whose end `onEnded` is told; it may be told before `step` is taken from. */
  begin(onEnded: (result: ChangeResult) => void): number {
    this.lastChange += 1;
    this.waiting.set(this.lastChange, onEnded);
    return this.lastChange;
  }

  /** All members, where clients find them. */
  nodes(): NodeAddress[] {
    return membersOf(this.parts.raft.configuration).map(({ id, client }) => ({ id, client }));
  }

  /** One that has removed itself leads until that is committed. */
  addressOf(id: NodeId | null): NodeAddress | null {
    const known = [...membersOf(this.parts.raft.configuration), ...membersOf(this.committed)];
    const member = known.find((each) => each.id === id);
    return member === undefined ? null : { id: member.id, client: member.client };
  }

  /** At a leader. */
  view(): MembersView {
    const { raft, clusterId } = this.parts;
    const { configuration, isChanging } = raft.status();
    const members = membersOf(configuration).map((member) => this.viewOf(member, configuration));
    return { clusterId, leader: raft.id, members, removed: configuration.removed, isChanging };
  }

  private viewOf(member: Member, configuration: Configuration): MemberView {
    const { raft, versions, links } = this.parts;
    const role = roleOf(member.id, configuration);
    if (member.id === raft.id) return { ...member, role, isUp: true, percent: 100, isCaughtUp: true, versions };
    const peer = raft.status().peers.find((each) => each.id === member.id);
    return {
      ...member,
      role,
      isUp: this.isUp(peer),
      percent: peer === undefined ? 0 : this.percentOf(peer),
      isCaughtUp: peer?.isCaughtUp === true,
      versions: links.met().get(member.id)?.versions ?? null,
    };
  }

  private isUp(peer: PeerStatus | undefined): boolean {
    return peer !== undefined && peer.heardMsAgo < this.parts.electionTimeoutMs;
  }

  /** A snapshot that is on its way counts by its chunks, and what comes behind it by entries. */
  private percentOf({ snapshot, matchIndex }: PeerStatus): number {
    const { raft } = this.parts;
    if (snapshot !== null) {
      const chunks = this.parts.snapshotChunks(snapshot.index);
      return chunks === null ? 0 : Math.min(99, Math.floor((100 * snapshot.chunk) / chunks));
    }
    const from = raft.logBase.position.index;
    const length = raft.lastIndex - from;
    if (length === 0) return matchIndex >= from ? 100 : 0;
    return Math.max(0, Math.floor((100 * (matchIndex - from)) / length));
  }

  private settle(outcome: ChangeOutcome): void {
    if (outcome.kind === "appended") return;
    const end = this.waiting.get(outcome.id);
    this.waiting.delete(outcome.id);
    end?.(this.resultOf(outcome));
  }

  private resultOf(outcome: Exclude<ChangeOutcome, { readonly kind: "appended" }>): ChangeResult {
    if (outcome.kind === "completed") return { kind: "completed", index: outcome.index };
    if (outcome.kind === "unknown") return { code: "unknown_outcome" };
    const { code: reason, member } = outcome;
    if (reason === "not_leader") return { code: reason, leader: this.addressOf(this.parts.raft.leader) };
    const named = member === null ? [] : [member];
    return { code: "change_refused", reason, members: reason === "would_lose_quorum" ? this.notUp(named) : named };
  }

  /** All voters that have not answered, and whom the core has named: it may be up, and far behind. */
  private notUp(named: readonly NodeId[]): NodeId[] {
    const { raft } = this.parts;
    const { peers } = raft.status();
    const silent = raft.configuration.voters.filter(
      ({ id }) => id !== raft.id && !this.isUp(peers.find((peer) => peer.id === id)),
    );
    return [...new Set([...named, ...silent.map(({ id }) => id)])].sort();
  }

  private tellLinks(): void {
    this.parts.links.noteConfiguration(this.parts.raft.configuration, this.committed);
  }
}

/** Each once: a voter that stays is in both sets of a joint change. */
function membersOf({ voters, outgoing, learners }: Configuration): Member[] {
  return [...new Map([...outgoing, ...voters, ...learners].map((member) => [member.id, member])).values()].sort(
    (a, b) => (a.id < b.id ? -1 : 1),
  );
}

function roleOf(id: NodeId, { voters, learners }: Configuration): MemberRole {
  const isIn = (members: readonly Member[]): boolean => members.some((member) => member.id === id);
  if (isIn(voters)) return "voter";
  return isIn(learners) ? "learner" : "outgoing";
}
