/** Configurations as values: what a change makes of one, and what is wrong with a change by itself. Who is up or ahead is asked elsewhere. */
import { assert } from "./assert.js";
import type { ChangeRefusalCode, Configuration, Member, MembershipChange, NodeId } from "./types.js";

export interface ChangeProblem {
  readonly code: ChangeRefusalCode;
  /** Whom it speaks of, if of one. */
  readonly member: NodeId | null;
}

export interface MembershipBounds {
  readonly votersMax: number;
  readonly membersMax: number;
  readonly removedMax: number;
}

export const membershipBounds: MembershipBounds = {
  /** Seven tolerate three failures; each further voter makes every decision slower and tolerates hardly more. */
  votersMax: 7,
  /** Voters, outgoing voters and learners: all voters can be replaced at once. The leader sends every entry to each. */
  membersMax: 14,
  /** Tombstones: they are in every configuration for ever. Ten replacements a day for a year. */
  removedMax: 4_096,
};

/**
 * What stands in the log first: a joint configuration when the voters change (thesis 4.3), else the new one at once, for learners are in
 * no quorum. A voter that goes is not listed as removed yet: it counts until the final configuration.
 */
export function changedConfiguration(current: Configuration, change: MembershipChange): Configuration {
  const removes = (member: Member): boolean => change.remove.includes(member.id);
  const promotes = (member: Member): boolean => change.promote.includes(member.id);
  const staying = current.voters.filter((member) => !removes(member));
  const promoted = current.learners.filter(promotes);
  const changesVoters = promoted.length > 0 || staying.length < current.voters.length;
  return {
    voters: [...staying, ...promoted],
    outgoing: changesVoters ? current.voters : [],
    learners: [...current.learners.filter((member) => !promotes(member) && !removes(member)), ...change.add],
    removed: [...current.removed, ...idsOf(current.learners.filter(removes))],
  };
}

/** What follows a joint configuration once it is committed: any leader can tell it from that one alone. */
export function finalConfiguration(joint: Configuration): Configuration {
  const voters = idsOf(joint.voters);
  const gone = idsOf(joint.outgoing).filter((id) => !voters.includes(id));
  return { ...joint, outgoing: [], removed: [...joint.removed, ...gone] };
}

/** The first thing that is wrong with the change, were all members up and up to date. `current` is no joint configuration. */
export function problemWith(current: Configuration, change: MembershipChange): ChangeProblem | null {
  const { add, promote, remove } = change;
  const named = [...idsOf(add), ...promote, ...remove];
  if (named.length === 0) return { code: "empty_change", member: null };
  const twice = named.find((id, at) => named.indexOf(id) < at);
  if (twice !== undefined) return { code: "named_twice", member: twice };
  const removed = named.find((id) => current.removed.includes(id));
  if (removed !== undefined) return { code: "removed_id", member: removed };
  return (
    problemWithAdded(current, add) ?? problemWithNamed(current, promote, remove) ?? problemWithSize(current, change)
  );
}

/** No id has two parts to play, and none comes back. Throws InvariantError. */
export function assertConfiguration({ voters, outgoing, learners, removed }: Configuration): void {
  const voting = new Set([...idsOf(voters), ...idsOf(outgoing)]);
  const learning = idsOf(learners);
  assert(
    learning.every((id) => !voting.has(id)),
    "a learner has no vote",
  );
  assert(
    removed.every((id) => !voting.has(id) && !learning.includes(id)),
    "who was removed never comes back",
  );
}

function problemWithAdded(current: Configuration, add: readonly Member[]): ChangeProblem | null {
  const others = [...current.voters, ...current.learners];
  for (const member of add) {
    for (const other of others) {
      const code = clashOf(member, other);
      if (code !== null) return { code, member: member.id };
    }
    others.push(member);
  }
  return null;
}

function clashOf(added: Member, other: Member): ChangeRefusalCode | null {
  if (added.id === other.id) return added.instance === other.instance ? "already_member" : "instance_differs";
  if (added.instance === other.instance) return "instance_taken";
  const addresses = [other.peer, other.client];
  return addresses.includes(added.peer) || addresses.includes(added.client) ? "address_taken" : null;
}

function problemWithNamed(
  current: Configuration,
  promote: readonly NodeId[],
  remove: readonly NodeId[],
): ChangeProblem | null {
  const voters = idsOf(current.voters);
  const learners = idsOf(current.learners);
  const already = promote.find((id) => voters.includes(id));
  if (already !== undefined) return { code: "already_member", member: already };
  const unknown =
    promote.find((id) => !learners.includes(id)) ?? remove.find((id) => !voters.includes(id) && !learners.includes(id));
  return unknown === undefined ? null : { code: "unknown_member", member: unknown };
}

function problemWithSize(current: Configuration, change: MembershipChange): ChangeProblem | null {
  const next = changedConfiguration(current, change);
  const { votersMax, membersMax, removedMax } = membershipBounds;
  const members = new Set([...idsOf(next.voters), ...idsOf(next.outgoing), ...idsOf(next.learners)]);
  if (next.voters.length === 0) return { code: "no_voters", member: null };
  if (next.voters.length > votersMax) return { code: "too_many_voters", member: null };
  if (members.size > membersMax) return { code: "too_many_members", member: null };
  return finalConfiguration(next).removed.length > removedMax ? { code: "too_many_removed", member: null } : null;
}

function idsOf(members: readonly Member[]): NodeId[] {
  return members.map((member) => member.id);
}
