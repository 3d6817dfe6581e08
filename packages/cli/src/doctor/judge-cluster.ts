/** From what all nodes say to what is wrong between them. Pure. */
import type { Examined, ClusterFacts, KnownMember, NodeFacts } from "./cluster-facts.js";
import { examinedIn, leaderIn, listed, membersIn, removedIn } from "./cluster-facts.js";
import { findingsOr, manual, problem, warning } from "./finding.js";
import type { Finding } from "./finding.js";
import { judgeConfiguration } from "./judge-configuration.js";
import { judgeNodes } from "./judge-nodes.js";

const refusedPage = `${manual}#a-node-that-refuses-to-start`;
const networkPage = `${manual}#ports-and-firewalls`;

export function judgeCluster(facts: ClusterFacts): readonly Finding[] {
  const examined = examinedIn(facts);
  const silent = judgeReach(facts, examined);
  if (examined.length === 0) return silent;
  const identified = judgeClusterIds(examined);
  // What follows compares nodes with each other: of two clusters' nodes it would say nothing that is true.
  if (clustersIn(examined).size > 1) return [...silent, ...identified];
  return [
    ...silent,
    ...identified,
    ...judgeConfiguration(facts, examined),
    ...judgeLeader(examined),
    ...judgeLinks(examined),
    ...judgeLag(examined),
    ...judgeNodes(examined),
  ];
}

const addCommand = "holdfast member add ID --peer HOST:PORT --client HOST:PORT";

/** For a disk that is lost; what a member is called and where it is, is the operator's choice. */
export function replaceCommand(id: string): string {
  return `holdfast member replace ${id} NEW --peer HOST:PORT --client HOST:PORT`;
}

function judgeReach(facts: ClusterFacts, examined: readonly Examined[]): readonly Finding[] {
  const members = membersIn(examined);
  const faults = facts.nodes.flatMap((node) => {
    if (node.error === null) return [];
    const removed = removedAt(node.endpoint, facts, examined);
    if (removed !== null && node.error.kind === "silent") return removedFinding(removed, node.endpoint);
    return reachFault(node, node.error, members, examined);
  });
  const unready = examined.flatMap(({ id, after }) => {
    if (after.host !== null || after.health.problem === null) return [];
    if (after.refusedBeginning !== null) return refusedBeginningFinding(id, after.refusedBeginning);
    const missing = after.links.filter(({ isLinked }) => !isLinked).map((link) => link.id);
    return problem("reachable", {
      node: id,
      seen: `is up, and not part of a cluster yet: ${after.health.problem}`,
      why: missing.length === 0 ? "It serves nobody." : `It serves nobody; it has no links with ${listed(missing)}.`,
      mend: `start the others, or see why the links are missing: ${networkPage}; a node that was started with --join: holdfast member add ${id} --peer HOST:PORT --client HOST:PORT`,
    });
  });
  const ids = examined.map(({ id }) => id);
  return findingsOr("reachable", [...faults, ...unready], `all nodes answer: ${listed(ids)}`);
}

function refusedBeginningFinding(
  node: string,
  { from, problem: reason }: NonNullable<Examined["after"]["refusedBeginning"]>,
): Finding {
  return problem("reachable", {
    node,
    seen: `is up, and refuses the cluster that ${from} has formed: ${reason}`,
    why: `The nodes were started with different --first-index, or ${from} without one: tokens that it would give out are too low.`,
    mend: `stop all nodes, empty their directories, and start all of them with the same --first-index: ${manual}#a-cluster-that-was-lost`,
  });
}

/** Who was at that address by anybody's file, and belongs to the cluster no more. */
function removedAt(endpoint: string, { file }: ClusterFacts, examined: readonly Examined[]): string | null {
  if (membersIn(examined).some(({ client }) => client === endpoint)) return null;
  const removed = removedIn(examined);
  const named = [...(file?.content.nodes ?? []), ...examined.flatMap(({ after }) => after.file.nodes)];
  return named.find(({ id, client }) => client === endpoint && removed.includes(id))?.id ?? null;
}

function removedFinding(id: string, endpoint: string): Finding {
  return warning("reachable", {
    node: id,
    seen: `${endpoint} doesn't answer: ${id} was removed from the cluster`,
    why: "A removed node ends with exit code 84, and its id never comes back; clients that are given the address try it in vain.",
    mend: `take it out of the files, --endpoints and HOLDFAST_ENDPOINTS, and its unit away; a node in its place gets a new id: ${addCommand}`,
  });
}

function reachFault(
  { endpoint, before }: NodeFacts,
  error: NonNullable<NodeFacts["error"]>,
  members: readonly KnownMember[],
  examined: readonly Examined[],
): Finding {
  const id = before?.id ?? members.find(({ client }) => client === endpoint)?.id ?? null;
  const seen = `${endpoint} ${before === null ? "doesn't answer" : "has ceased to answer"}: ${error.message}`;
  if (error.kind === "foreign") {
    return problem("reachable", {
      node: id,
      seen: `${endpoint} answers, and can't be examined: ${error.message}`,
      why: "Another program listens there, or a release that is too old to be asked.",
      mend: "correct --endpoints, or see holdfast status",
    });
  }
  if (id === null && examined.length > 0) {
    return warning("reachable", {
      node: null,
      seen,
      why: "No node of the cluster has this address; clients that are given it try it in vain.",
      mend: "take it out of --endpoints, HOLDFAST_ENDPOINTS and the clients' settings, or start the node",
    });
  }
  const hearing = examined.filter(({ before: earlier, after }) =>
    [...earlier.links, ...after.links].some((link) => link.id === id && link.isLinked),
  );
  if (id !== null && hearing.length > 0) {
    return problem("reachable", {
      node: id,
      seen: `${seen}; linked with ${listed(hearing.map((node) => node.id))}`,
      why: "Its process stands still, or it runs and its client port can't be reached from here.",
      mend: `look at its process and its log; then at the way from here to ${endpoint}: ${networkPage}`,
    });
  }
  if (id !== null && isLearner(id, examined)) {
    return problem("reachable", {
      node: id,
      seen,
      why: "It is a learner: it has no vote, and can't be given one while it is down.",
      mend: `start it; if it is never to come back: holdfast member remove ${id}`,
    });
  }
  const isMajorityLost = leaderIn(examined) === null && votersWithoutMajority(examined) !== null;
  const replacement = isMajorityLost
    ? `${manual}#lost-majority (without a majority no member can be replaced)`
    : replaceCommand(id ?? "ID");
  return problem("reachable", {
    node: id,
    seen,
    why: "While it is down the cluster bears fewer failures, or has no majority left.",
    mend: `start it; if it refuses: ${refusedPage}; if its disk is lost: ${replacement}`,
  });
}

function isLearner(id: string, examined: readonly Examined[]): boolean {
  const sets = examined.flatMap(({ after }) => after.host?.configuration ?? []);
  return sets.length > 0 && sets.every(({ learners }) => learners.some((learner) => learner.id === id));
}

/** Their nodes by the cluster's id; those that are not formed yet have none. */
function clustersIn(examined: readonly Examined[]): ReadonlyMap<string, readonly string[]> {
  const clusters = new Map<string, readonly string[]>();
  for (const { id, after } of examined) {
    const clusterId = after.status?.clusterId ?? "";
    if (clusterId !== "") clusters.set(clusterId, [...(clusters.get(clusterId) ?? []), id]);
  }
  return clusters;
}

function judgeClusterIds(examined: readonly Examined[]): readonly Finding[] {
  const clusters = clustersIn(examined);
  const faults: Finding[] = [];
  if (clusters.size > 1) {
    const told = [...clusters].map(([clusterId, ids]) => `${clusterId} (${listed(ids)})`);
    faults.push(
      problem("cluster id", {
        node: null,
        seen: `these addresses lead to ${clusters.size} clusters: ${told.join(", ")}`,
        why: "Clients of one take the other's locks for their own. Nothing else can be judged of nodes that don't belong together.",
        mend: `stop the nodes of the one that should be gone (an old one beside its restore: ${manual}#restore), or correct --endpoints, and run this again`,
      }),
    );
  }
  const isTwin = (one: Examined, other: Examined): boolean => {
    const ids = new Set([one, other].map(({ after }) => after.status?.clusterId ?? ""));
    return one.id === other.id && (ids.size === 1 || ids.has(""));
  };
  const twice = examined.filter((node, at) => examined.slice(0, at).some((earlier) => isTwin(earlier, node)));
  for (const { id, after } of twice) {
    faults.push(
      problem("cluster id", {
        node: id,
        seen: `there are two nodes of this id; one has its data in ${after.dataDirectory}`,
        why: "Two processes that vote under one id can break every promise.",
        mend: `stop the one that isn't where the configuration file says; ${refusedPage}`,
      }),
    );
  }
  const [clusterId] = clusters.keys();
  return findingsOr("cluster id", faults, clusterId === undefined ? "not formed yet" : `all belong to ${clusterId}`);
}

function judgeLeader(examined: readonly Examined[]): readonly Finding[] {
  const leader = leaderIn(examined);
  const formed = examined.filter(({ after }) => after.status !== null);
  if (formed.length === 0) return [];
  if (leader === null) return [nobodyLeads(formed, refusingIn(examined))];
  const term = leader.after.status?.term ?? 0;
  const faults: Finding[] = formed
    .filter(({ after }) => after.status?.leader !== leader.id)
    .map(({ id, after }) =>
      problem("leader", {
        node: id,
        seen: `${after.status?.leader === null ? "knows no leader" : `takes ${after.status?.leader} for the leader`} in term ${after.status?.term}, and ${leader.id} leads in term ${term}`,
        why: "It is cut off from the others, or an election is under way.",
        mend: `run this again; if it stays, see its links: ${networkPage}`,
      }),
    );
  const termBefore = Math.max(0, ...formed.map(({ before }) => before.status?.term ?? 0));
  if (termBefore > 0 && termBefore < term) {
    faults.push(
      warning("leader", {
        node: leader.id,
        seen: `leads since a moment ago: term ${termBefore} became ${term} in the meantime`,
        why: "Requests wait during an election. One is nothing; one after the other means slow disks, stalls or a bad network.",
        mend: `run this again; the reasons are in the logs of the nodes: ${manual}#log-lines`,
      }),
    );
  }
  return findingsOr("leader", faults, `${leader.id} leads in term ${term}, and all know it`);
}

/** The voters of which half or more don't answer, as far as those that do know; null when there is a majority. */
function votersWithoutMajority(examined: readonly Examined[]): readonly KnownMember[] | null {
  const configuration = examined
    .flatMap(({ after }) => after.host ?? [])
    .sort((a, b) => b.configurationIndex - a.configurationIndex)[0]?.configuration;
  const sets = [configuration?.voters ?? [], configuration?.outgoing ?? []].filter((set) => set.length > 0);
  return sets.find((set) => answeringIn(set, examined).length <= set.length / 2) ?? null;
}

function answeringIn(members: readonly KnownMember[], examined: readonly Examined[]): readonly string[] {
  const ids = examined.filter(({ after }) => after.status !== null).map(({ id }) => id);
  return members.map(({ id }) => id).filter((id) => ids.includes(id));
}

/** Those that refuse a cluster that begins too low. */
function refusingIn(examined: readonly Examined[]): readonly string[] {
  return examined.filter(({ after }) => after.refusedBeginning !== null).map(({ id }) => id);
}

function nobodyLeads(formed: readonly Examined[], refusing: readonly string[]): Finding {
  const lost = votersWithoutMajority(formed);
  if (lost === null) {
    return problem("leader", {
      node: null,
      seen: `nobody leads, although a majority answers: ${listed(formed.map(({ id }) => id))}`,
      why: "Nothing is granted, renewed or released meanwhile.",
      mend: `run this again; if it stays, the nodes don't hear each other (see links) or their disks hang: ${manual}#log-lines`,
    });
  }
  const there = answeringIn(lost, formed);
  return problem("leader", {
    node: null,
    seen: `nobody leads: ${there.length} of ${lost.length} voters ${there.length === 1 ? "answers" : "answer"} (${listed(there) || "none"})`,
    why: "Without a majority nothing can be granted, renewed or released.",
    mend:
      refusing.length > 0
        ? `see why ${listed(refusing)} refuse this cluster (reachable)`
        : `start the others with their own data directories; only if those are lost for ever: ${manual}#lost-majority`,
  });
}

function judgeLinks(examined: readonly Examined[]): readonly Finding[] {
  const faults: Finding[] = [];
  let pairs = 0;
  for (const [at, one] of examined.entries()) {
    for (const other of examined.slice(at + 1)) {
      if (one.id === other.id) continue;
      pairs += 1;
      const missing = [
        [one, other],
        [other, one],
      ].filter(([from, to]) => from?.after.links.some(({ id, isLinked }) => id === to?.id && !isLinked) === true);
      if (missing.length === 0) continue;
      faults.push(
        problem("links", {
          node: one.id,
          seen: `is not linked with ${other.id} (says ${listed(missing.flatMap(([from]) => from?.id ?? []))})`,
          why: "They don't hear each other. One more failure, and the rest may be no majority that does.",
          mend: `let each reach the other's peer address, and see "can't be reached" in their logs: ${networkPage}`,
        }),
      );
    }
  }
  const leader = leaderIn(examined);
  for (const { id, heardMsAgo } of leader?.after.host?.followers ?? []) {
    const follower = examined.find((node) => node.id === id);
    const lateMs = 2 * (leader?.after.file.timing.electionTimeoutMs ?? 0);
    if (leader === null || follower === undefined || heardMsAgo <= lateMs) continue;
    faults.push(
      warning("links", {
        node: id,
        seen: `the leader ${leader.id} has not heard it for ${heardMsAgo} ms`,
        why: "It doesn't count for any decision meanwhile.",
        mend: `look at its process and its log; then at the network: ${networkPage}`,
      }),
    );
  }
  return findingsOr("links", faults, pairs === 0 ? "there are no two nodes to be linked" : "each hears each other");
}

/** What the leader had committed before the time of measuring must be everywhere after it. */
function judgeLag(examined: readonly Examined[]): readonly Finding[] {
  const leader = leaderIn(examined);
  const committed = leader?.before.status?.commitIndex ?? null;
  if (leader === null || committed === null) return [];
  const faults = examined.flatMap(({ id, before, after }): readonly Finding[] => {
    const now = after.status;
    if (now === null || now.lastApplied >= committed) return [];
    const isMoving = now.lastApplied > (before.status?.lastApplied ?? 0);
    const behind = (leader.after.status?.commitIndex ?? committed) - now.lastApplied;
    const fault = {
      node: id,
      seen: `is ${behind} entries behind ${leader.id}${isMoving ? ", and catching up" : ", and stands still"}`,
      why: "Until it has caught up it is of no use as the next leader.",
      mend: isMoving ? "wait, and run this again" : `look at its disk and its log: ${manual}#watching-it`,
    };
    return [isMoving ? warning("lag", fault) : problem("lag", fault)];
  });
  return findingsOr("lag", faults, `all have applied what was committed before (index ${committed})`);
}
