/**
 * Quorum arithmetic, over the full sets of voters with the own node among them. In a joint configuration a decision needs a majority
 * of each half (thesis 4.3); an empty outgoing half never holds one back.
 */
import type { Configuration, Member, NodeId } from "./types.js";

export interface VoterSets {
  readonly voters: readonly NodeId[];
  readonly outgoing: readonly NodeId[];
}

export type Tally = "won" | "lost" | "pending";

export function voterSetsFor(configuration: Configuration): VoterSets {
  return { voters: configuration.voters.map(idOf), outgoing: configuration.outgoing.map(idOf) };
}

/** All ids of both halves, each once. */
export function voterIdsFor(sets: VoterSets): readonly NodeId[] {
  return [...new Set([...sets.voters, ...sets.outgoing])];
}

function majorityOf(count: number): number {
  return Math.floor(count / 2) + 1;
}

/** The highest value that a quorum has reached: with match indexes, what a quorum holds; with times, since when it was heard. */
export function quorumValueFor(sets: VoterSets, valueFor: (id: NodeId) => number): number {
  const incoming = majorityValueFor(sets.voters, valueFor);
  if (sets.outgoing.length === 0) return incoming;
  return Math.min(incoming, majorityValueFor(sets.outgoing, valueFor));
}

/** Where an election stands. Ballots of ids that don't vote are passed over. */
export function tallyBallots(sets: VoterSets, ballots: ReadonlyMap<NodeId, boolean>): Tally {
  const incoming = tallyHalf(sets.voters, ballots);
  const outgoing = tallyHalf(sets.outgoing, ballots);
  if (incoming === "lost" || outgoing === "lost") return "lost";
  return incoming === "won" && outgoing === "won" ? "won" : "pending";
}

function idOf(member: Member): NodeId {
  return member.id;
}

/** Reused by each call: this runs for every acknowledgement, and must leave no garbage behind. */
const sorted: number[] = [];

function majorityValueFor(ids: readonly NodeId[], valueFor: (id: NodeId) => number): number {
  const count = ids.length;
  if (count === 0) return Number.POSITIVE_INFINITY;
  for (let i = 0; i < count; i += 1) {
    const value = valueFor(ids[i] as NodeId);
    let at = i;
    for (; at > 0 && (sorted[at - 1] as number) > value; at -= 1) sorted[at] = sorted[at - 1] as number;
    sorted[at] = value;
  }
  return sorted[count - majorityOf(count)] as number;
}

function tallyHalf(ids: readonly NodeId[], ballots: ReadonlyMap<NodeId, boolean>): Tally {
  if (ids.length === 0) return "won";
  let granted = 0;
  let refused = 0;
  for (const id of ids) {
    const ballot = ballots.get(id);
    if (ballot === true) granted += 1;
    else if (ballot === false) refused += 1;
  }
  const majority = majorityOf(ids.length);
  if (granted >= majority) return "won";
  return ids.length - refused < majority ? "lost" : "pending";
}
