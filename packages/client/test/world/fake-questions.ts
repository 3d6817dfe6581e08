/** How the fake nodes answer questions and orders that belong to no session. */
import type { ClientMessage, NodeStatus } from "@holdfast/wire";
import type { FakeCluster } from "./fake-cluster.js";
import { answerKeyQuery, isKeyQuery, setKey } from "./fake-keys.js";
import type { FakeNode } from "./fake-node.js";
import type { ServerSocket } from "./virtual-network.js";

type Question = Extract<
  ClientMessage,
  { kind: "query" | "forceRelease" | "transfer" | "finalize" | "rotateKey" | "changeMembers" }
>;

export function answerQuestion(cluster: FakeCluster, node: FakeNode, socket: ServerSocket, message: Question): void {
  const { id } = message;
  if (message.kind === "query" && message.query.kind === "status") {
    cluster.say(node, socket, { kind: "answer", id, result: { kind: "status", status: statusOf(cluster, node) } });
    return;
  }
  if (cluster.leader !== node.id) {
    cluster.refuse(node, socket, { id }, cluster.notLeader(node));
    return;
  }
  cluster.commit(() => decide(cluster, node, socket, message));
}

function decide(cluster: FakeCluster, node: FakeNode, socket: ServerSocket, message: Question): void {
  const { id } = message;
  if (message.kind === "forceRelease") {
    const { name, token, principal, lockDelayMs } = message;
    const effects = cluster.apply({ kind: "forceRelease", name, token, principal, lockDelayMs });
    const forced = effects.find((effect) => effect.kind === "forced");
    if (forced?.kind !== "forced") throw new Error("a forced release is answered");
    cluster.say(node, socket, { kind: "forced", id, ended: forced.ended, holders: forced.holders.length });
    return;
  }
  if (message.kind === "transfer") {
    const to = message.to ?? "n2";
    cluster.say(node, socket, { kind: "transferred", id, leader: cluster.addressOf(to) });
    cluster.elect(to);
    return;
  }
  if (message.kind === "finalize") {
    cluster.apply({ kind: "setClusterVersion", version: 2 });
    cluster.say(node, socket, { kind: "finalized", id, version: cluster.machine.clusterVersion });
    return;
  }
  if (message.kind === "rotateKey") {
    cluster.say(node, socket, { kind: "keyRotated", id, key: setKey(cluster, message.principal) });
    return;
  }
  if (message.kind === "changeMembers") {
    const refusal = cluster.refuseChange();
    if (refusal !== null) cluster.refuse(node, socket, { id }, refusal);
    else cluster.say(node, socket, { kind: "membersChanged", id, index: cluster.lastIndex });
    return;
  }
  const { lastIndex: index, machine } = cluster;
  const { query } = message;
  if (isKeyQuery(query)) return answerKeyQuery(cluster, node, socket, id, query);
  if (query.kind === "inspect") {
    cluster.say(node, socket, {
      kind: "answer",
      id,
      result: { kind: "lock", index, lock: machine.lockView(query.name, 16) },
    });
  } else if (query.kind === "list") {
    const { locks, more } = machine.list(query.prefix, query.after, query.limit);
    cluster.say(node, socket, { kind: "answer", id, result: { kind: "locks", index, locks, more } });
  } else if (query.kind === "sessions") {
    const sessions = [...machine.sessions()].slice(0, query.limit);
    cluster.say(node, socket, { kind: "answer", id, result: { kind: "sessions", index, sessions } });
  } else if (query.kind === "members") {
    const members = { clusterId: cluster.clusterId, leader: node.id, members: [], removed: ["n0"], isChanging: false };
    cluster.say(node, socket, { kind: "answer", id, result: { kind: "members", index, members } });
  }
}

function statusOf(cluster: FakeCluster, node: FakeNode): NodeStatus {
  const { lastIndex, machine, clusterId } = cluster;
  return {
    id: node.id,
    role: node.id === cluster.leader ? "leader" : "follower",
    term: cluster.term,
    leader: node.leader,
    commitIndex: lastIndex,
    lastApplied: lastIndex,
    lastIndex,
    snapshotIndex: 0,
    sessions: machine.sessionCount,
    locks: machine.lockCount,
    clusterId,
    version: "test",
    uptimeMs: 1,
    nodes: cluster.nodes.map(({ id, endpoint }) => ({ id, client: endpoint })),
    clusterVersion: machine.clusterVersion,
    versions: { min: 1, max: 2 },
  };
}
