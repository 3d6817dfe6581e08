/** Majorities, counted anew: the watch must not go by the arithmetic that it watches. */
import type { Configuration, Member, NodeId } from "@holdfast/raft";

/** Whether those of whom `counts` speaks are a majority of the voters, and of the outgoing ones if there are any. */
export function isQuorum({ voters, outgoing }: Configuration, counts: (id: NodeId) => boolean): boolean {
  return isMajority(voters, counts) && (outgoing.length === 0 || isMajority(outgoing, counts));
}

function isMajority(members: readonly Member[], counts: (id: NodeId) => boolean): boolean {
  let count = 0;
  for (const { id } of members) if (counts(id)) count += 1;
  return 2 * count > members.length;
}
