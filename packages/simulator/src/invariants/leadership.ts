/** Rules 1, 4 and 10: who leads, what a leader must have, and whom it must have heard. */
import type { Index, NodeId, RaftStatus } from "@holdfast/raft";
import type { GhostLog } from "./ghost-log.js";
import { demand } from "./invariant-error.js";
import { isQuorum } from "./quorums.js";
import { Recent } from "./recent.js";
import type { Life, WatchedNode } from "./watched-node.js";

export class Leadership {
  readonly #leaders = new Recent<number, NodeId>(4_096);
  readonly #electionTimeoutMs: number;

  constructor(electionTimeoutMs: number) {
    this.#electionTimeoutMs = electionTimeoutMs;
  }

  onLeader(node: WatchedNode, life: Life, ghost: GhostLog): void {
    const { raft } = life.probe;
    const other = this.#leaders.get(raft.term);
    demand(other === undefined || other === node.id, "election-safety", () => {
      return `${other} and ${node.id} both lead in term ${raft.term}`;
    });
    this.#leaders.set(raft.term, node.id);
    const { commitPoint } = ghost;
    demand(raft.lastIndex >= commitPoint, "leader-completeness", () => {
      return `${node.id} leads in term ${raft.term} and ends at ${raft.lastIndex}, committed is up to ${commitPoint}`;
    });
    for (let index = raft.logBase.position.index + 1; index <= commitPoint; index += 1) {
      const known = ghost.committedChain(index);
      demand(known === null || raft.chainAt(index as Index) === known, "leader-completeness", () => {
        return `${node.id} leads in term ${raft.term} with another entry ${index} than was committed`;
      });
    }
    life.leadingSinceMs = life.eventMs;
    life.silenceDueMs = 0;
  }

  /**
   * A leader that has not heard a quorum for two election timeouts is none; half a timeout of slack for what is on its way through the
   * loop. After a pause the first turn may still be to come.
   */
  checkContact(node: WatchedNode, life: Life, status: RaftStatus): void {
    const nowMs = life.eventMs;
    const slackMs = this.#electionTimeoutMs / 2;
    if (status.role !== "leader" || nowMs < life.silenceDueMs || nowMs - life.wokenMs < slackMs) return;
    life.silenceDueMs = nowMs + slackMs / 2;
    const boundMs = 2 * this.#electionTimeoutMs + slackMs;
    // Whom it counts only since then it need not have heard before.
    if (nowMs - life.votersSinceMs <= boundMs) return;
    const believesItHeard = isQuorum(status.configuration, (id) => {
      return id === node.id || status.peers.some((peer) => peer.id === id && peer.heardMsAgo <= boundMs);
    });
    demand(believesItHeard, "quorum-contact", () => {
      return `${node.id} leads in term ${status.term} and says that it has not heard a quorum for ${boundMs} ms`;
    });
    if (life.heardMs.size === 0 || nowMs - life.leadingSinceMs <= boundMs) return;
    const hasHeard = isQuorum(status.configuration, (id) => {
      return id === node.id || nowMs - (life.heardMs.get(id) ?? life.leadingSinceMs) <= boundMs;
    });
    demand(hasHeard, "quorum-contact", () => {
      return `${node.id} leads in term ${status.term}, nothing of a quorum was delivered to it for ${boundMs} ms`;
    });
  }
}
