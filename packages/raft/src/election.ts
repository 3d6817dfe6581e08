/**
 * Pre-votes, votes and who may have them (thesis 3.4, 3.6.1, 4.2.3, 9.6). A pre-vote asks whether a vote would be won and promises nothing,
 * so a node that can't win never raises a term.
 */
import type { Core } from "./core.js";
import { comparePositions, nextTerm } from "./position.js";
import { tallyBallots } from "./quorum.js";
import type { Message, NodeId } from "./types.js";

type MessageOf<Kind extends Message["kind"]> = Message & { readonly kind: Kind };

/** A follower whose leader's process is gone campaigns within this time: long enough that two of them seldom ask at once. */
const fastFailoverMs = 50;

/** The election timeout has passed, or a campaign was due earlier. */
export function onElectionTimeout(core: Core): void {
  if (core.isDiskOverdue) {
    // It could neither store its own vote nor lead.
    core.drawElectionDeadline();
    return;
  }
  const reason = core.electionReason === "" ? "no leader was heard within the election timeout" : core.electionReason;
  core.becomePreCandidate(reason);
  const message: Message = { kind: "preVote", term: nextTerm(core.term), last: core.log.last };
  sendToVoters(core, message);
  countPreVotes(core);
}

export function onPreVote(core: Core, from: NodeId, message: MessageOf<"preVote">): void {
  const { role, log } = core;
  const ahead = comparePositions(message.last, log.last);
  const granted = message.term > core.term && ahead >= 0 && !core.isSticky && !core.isDiskOverdue;
  core.send(from, { kind: "preVoteAnswer", term: granted ? message.term : core.term, granted });
  if (granted) {
    core.postponeCampaign();
    // Of two that ask at once only one should go on, or they split the votes.
    if (role.kind === "preCandidate" && (ahead > 0 || from < core.id)) {
      core.becomeFollower(core.term, null, `${from} asks for votes too`);
    }
  } else if (ahead < 0 && !core.isSticky && role.kind !== "candidate") {
    // It can't win, and its asking shows that it misses the leader too: whoever has the longer log should ask (again).
    core.campaignWithin(fastFailoverMs, `${from} asks for votes with an older log`);
  }
}

export function onPreVoteAnswer(core: Core, from: NodeId, message: MessageOf<"preVoteAnswer">): void {
  if (!message.granted && message.term > core.term) {
    // Whoever is behind in its term learns it here, or it would ask in vain for ever.
    core.becomeFollower(message.term, null, `${from} is in a later term`);
    return;
  }
  if (core.role.kind !== "preCandidate") return;
  if (message.granted && message.term !== nextTerm(core.term)) return;
  core.role.ballots.set(from, message.granted);
  countPreVotes(core);
}

/** The term rules have been applied: `message.term` is the own term. */
export function onVote(core: Core, from: NodeId, message: MessageOf<"vote">): void {
  // Candidates and leaders are never free: they voted for themselves.
  const isFree = core.votedFor === null || core.votedFor === from;
  const granted = isFree && comparePositions(message.last, core.log.last) >= 0;
  if (granted) {
    core.setVote(from);
    if (core.role.kind === "preCandidate") core.becomeFollower(core.term, null, `votes for ${from}`);
    core.drawElectionDeadline();
  }
  core.send(from, { kind: "voteAnswer", term: core.term, granted });
}

export function onVoteAnswer(core: Core, from: NodeId, message: MessageOf<"voteAnswer">): void {
  if (core.role.kind !== "candidate") return;
  core.role.ballots.set(from, message.granted);
  countVotes(core);
}

/** The own vote counts once it is durable, like everybody's. */
export function onPersistedVote(core: Core): void {
  const { hardState } = core.writes;
  if (core.role.kind !== "candidate" || hardState.term !== core.term || hardState.votedFor !== core.id) return;
  core.role.ballots.set(core.id, true);
  countVotes(core);
}

/** The leader asks this node to take over at once (thesis 3.10). */
export function onTimeoutNow(core: Core, from: NodeId): void {
  const { role } = core;
  if (role.kind !== "follower" || role.leader !== from || !core.isVoter || core.isDiskOverdue) return;
  startElection(core, true, `${from} hands its leadership over`);
}

/** The leader's process is gone. The follower may be wrong; then the leader's next message puts things right. */
export function onLeaderGone(core: Core, leader: NodeId): void {
  core.becomeFollower(core.term, null, `${leader} is gone`);
  core.campaignWithin(fastFailoverMs, `${leader} is gone`);
}

function startElection(core: Core, transfer: boolean, reason: string): void {
  core.becomeCandidate(reason);
  sendToVoters(core, { kind: "vote", term: core.term, last: core.log.last, transfer });
}

function countPreVotes(core: Core): void {
  if (core.role.kind !== "preCandidate") return;
  const { ballots } = core.role;
  const tally = tallyBallots(core.sets, ballots);
  if (tally === "won") startElection(core, false, `${grantedIn(ballots)} would vote for this node`);
  if (tally === "lost") core.becomeFollower(core.term, null, "too few would vote for this node");
}

function countVotes(core: Core): void {
  if (core.role.kind !== "candidate") return;
  const { ballots } = core.role;
  const tally = tallyBallots(core.sets, ballots);
  if (tally === "won") core.becomeLeader(`won the votes of ${grantedIn(ballots)}`);
  if (tally === "lost") core.becomeFollower(core.term, null, "too few voted for this node");
}

function grantedIn(ballots: ReadonlyMap<NodeId, boolean>): string {
  return [...ballots].flatMap(([id, granted]) => (granted ? [id] : [])).join(", ");
}

function sendToVoters(core: Core, message: Message): void {
  for (const id of core.voterIds) if (id !== core.id) core.send(id, message);
}
