/** Sees what goes into a node's core and what comes out of it: for the rules that speak of single messages and proposals. */
import type { Event, NodeId, Raft } from "@holdfast/raft";
import { Answers } from "./answers.js";
import type { Applied } from "./answers.js";
import { Changes } from "./changes.js";
import { Elections } from "./elections.js";
import { Rounds } from "./rounds.js";
import type { DurableView } from "./watched-node.js";

export interface CoreTap {
  readonly elections: Elections;
  readonly answers: Answers;
}

/** `attempt` runs a check; what it finds must not be thrown into the host. Null for a core that takes no events. */
export function tapCore(
  id: NodeId,
  raft: Raft,
  options: {
    readonly applied: Applied;
    readonly electionTimeoutMs: number;
    readonly attempt: (check: () => void) => void;
    /** Null for a node that has none yet, or none any more. */
    readonly diskOf: (id: NodeId) => DurableView | null;
    /** Whether that node's removal is committed at this index or below. */
    readonly isRemovedAt: (id: NodeId, index: number) => boolean;
    /** Whether it had a vote by what was committed at this index or below. */
    readonly hadVoteAt: (id: NodeId, index: number) => boolean;
  },
): CoreTap | null {
  if (typeof (raft as Partial<Raft>).step !== "function") return null;
  const { applied, electionTimeoutMs, attempt, diskOf, isRemovedAt, hadVoteAt } = options;
  const elections = new Elections(id, electionTimeoutMs, { isRemovedAt, hadVoteAt });
  const changes = new Changes(id, diskOf);
  const rounds = new Rounds(id, electionTimeoutMs);
  const step = raft.step.bind(raft);
  raft.step = (event: Event): void => {
    elections.beforeStep(raft, event);
    changes.beforeStep(raft, event);
    step(event);
    attempt(() => {
      elections.afterStep(raft, event);
      changes.afterStep(raft, event);
      rounds.afterStep(raft, event);
    });
  };
  const takeOutput = raft.takeOutput.bind(raft);
  raft.takeOutput = () => {
    const output = takeOutput();
    if (output !== null) attempt(() => rounds.afterOutput(raft, output));
    return output;
  };
  return { elections, answers: new Answers(rounds, applied) };
}
