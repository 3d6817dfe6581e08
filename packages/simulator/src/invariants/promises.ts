/** Rule 6: what a node promises is on its disk when it leaves, and binds all its lives. */
import type { HardState, Index, Message, NodeId, Term } from "@holdfast/raft";
import { demand, InvariantError } from "./invariant-error.js";
import { Recent } from "./recent.js";
import type { DurableView } from "./watched-node.js";

interface Acknowledged {
  readonly term: number;
  readonly index: Index;
  readonly chain: number | null;
}

const rule = "durable-promises";

export class Promises {
  readonly #id: NodeId;
  /** Votes that have left, by term. */
  readonly #votes = new Recent<number, NodeId>(4_096);
  #durable: HardState | null = null;
  #acknowledged: Acknowledged | null = null;
  #forgivenIndex = 0;

  constructor(id: NodeId) {
    this.#id = id;
  }

  /** Up to here the disk has acknowledged what it may have lost. */
  get forgivenIndex(): number {
    return this.#forgivenIndex;
  }

  /** The disk has lied: nothing that it said before binds any more. `persistedIndex`: the log counted as durable up to there. */
  forgive(persistedIndex: number): void {
    this.#forgivenIndex = Math.max(this.#forgivenIndex, persistedIndex, this.#acknowledged?.index ?? 0);
    this.#votes.clear();
    this.#durable = null;
    this.#acknowledged = null;
  }

  /** The durable term never falls, and the vote doesn't change within it, over all lives. */
  checkDurable(disk: DurableView): void {
    const { hardState } = disk;
    const known = this.#durable;
    if (hardState === known) return;
    this.#durable = hardState;
    if (known === null) return;
    const { term, votedFor } = hardState;
    demand(term >= known.term, rule, () => `the durable term of ${this.#id} falls from ${known.term} to ${term}`);
    if (term > known.term || known.votedFor === null) return;
    demand(votedFor === known.votedFor, rule, () => {
      return `the durable vote of ${this.#id} in term ${term} changes from ${known.votedFor} to ${votedFor}`;
    });
  }

  /** A new life begins with what the old ones promised, and knows it. `core`: before its first event. */
  checkAtStart(disk: DurableView, core: HardState): void {
    this.checkDurable(disk);
    const { term, votedFor } = disk.hardState;
    demand(core.term === term && core.votedFor === votedFor, rule, () => {
      return `${this.#id} starts in term ${core.term} with its vote for ${core.votedFor}, durable is ${votedFor} in ${term}`;
    });
    const vote = this.#votes.get(term);
    demand(vote === undefined || vote === votedFor, rule, () => {
      return `${this.#id} voted for ${vote} in term ${term}, its disk says ${votedFor}`;
    });
    demand(term >= disk.last.term, "contiguity", () => {
      return `the disk of ${this.#id} has entries of term ${disk.last.term} and the term ${term}`;
    });
    const known = this.#acknowledged;
    if (known === null || known.term !== term) return;
    demand(disk.last.index >= known.index, rule, () => {
      return `${this.#id} acknowledged ${known.index} in term ${term}, its disk ends at ${disk.last.index}`;
    });
    const stored = disk.chainAt(known.index);
    demand(stored === null || known.chain === null || stored === known.chain, rule, () => {
      return `${this.#id} acknowledged another entry ${known.index} than its disk holds`;
    });
  }

  /** A message leaves: what it promises is durable now. Messages that promise nothing pass. */
  checkSent(to: NodeId, message: Message, disk: DurableView): void {
    switch (message.kind) {
      case "vote":
        this.#checkVote(this.#id, message.term, disk);
        return;
      case "voteAnswer":
        this.#checkTerm(message, disk);
        if (message.granted) this.#checkVote(to, message.term, disk);
        return;
      case "appendAccepted":
        this.#checkTerm(message, disk);
        this.#checkHeld(message.term, message.matchIndex, disk);
        return;
      case "snapshotAnswer":
        this.#checkTerm(message, disk);
        if (message.installed) this.#checkHeld(message.term, message.snapshotIndex, disk);
        return;
      case "appendRejected":
      case "append":
      case "heartbeat":
        this.#checkTerm(message, disk);
        return;
      case "preVote":
      case "preVoteAnswer":
      case "heartbeatAnswer":
      case "snapshotChunk":
      case "timeoutNow":
        return;
      default:
        assertNever(message);
    }
  }

  #checkTerm(message: Message, disk: DurableView): void {
    const { term } = disk.hardState;
    demand(term >= message.term, rule, () => {
      return `${this.#id} sends ${message.kind} in term ${message.term}, durable is term ${term}`;
    });
  }

  #checkVote(candidate: NodeId, term: Term, disk: DurableView): void {
    const known = this.#votes.get(term);
    demand(known === undefined || known === candidate, rule, () => {
      return `${this.#id} votes for ${known} and for ${candidate} in term ${term}`;
    });
    this.#votes.set(term, candidate);
    const { hardState } = disk;
    // A later term in the same batch overwrites it; the vote binds no more.
    const isDurable = hardState.term > term || (hardState.term === term && hardState.votedFor === candidate);
    demand(isDurable, rule, () => {
      return `the vote of ${this.#id} for ${candidate} in term ${term} leaves, durable is ${hardState.votedFor} in ${hardState.term}`;
    });
  }

  #checkHeld(term: Term, index: Index, disk: DurableView): void {
    // Outputs of several terms may share a batch: then the promise was kept as long as it bound.
    if (disk.hardState.term > term) return;
    demand(disk.last.index >= index, rule, () => {
      return `${this.#id} acknowledges ${index} in term ${term}, its disk ends at ${disk.last.index}`;
    });
    const known = this.#acknowledged;
    if (known !== null && known.term === term && known.index >= index) return;
    this.#acknowledged = { term, index, chain: disk.chainAt(index) };
  }
}

function assertNever(value: never): never {
  throw new InvariantError("core", `unknown message ${JSON.stringify(value)}`);
}
