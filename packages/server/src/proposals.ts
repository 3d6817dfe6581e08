/** What this node would have in the log, and who is told when it doesn't get there. */
import type { Command } from "@holdfast/lock";
import type { Output, Proposal, Raft } from "@holdfast/raft";
import { encodeCommand } from "@holdfast/wire";
import type { NodeAddress, Refusal } from "@holdfast/wire";
import type { TurnLoop } from "./turn-loop.js";

export interface ProposalsParts {
  readonly loop: Pick<TurnLoop, "nowMs">;
  readonly raft: Raft;
  leader(): NodeAddress | null;
  /** Why no command of this kind may be proposed now; null when it may. */
  gate(kind: Command["kind"]): Refusal | null;
}

/** `onRefused` runs in the turn of the proposal, or never. */
export class Proposals {
  private readonly parts: ProposalsParts;
  private lastId = 0;
  private readonly refusals = new Map<number, (refusal: Refusal) => void>();

  constructor(parts: ProposalsParts) {
    this.parts = parts;
  }

  /** What a leader has decided itself: in this term or not at all. */
  proposeOwn(command: Command, onRefused: (refusal: Refusal) => void): void {
    this.propose(command, encodeCommand(command), true, this.parts.raft.term, onRefused);
  }

  /** What a client asks for in nobody's name: it is right in any term. */
  proposeForced(command: Command, onRefused: (refusal: Refusal) => void): void {
    this.propose(command, encodeCommand(command), true, null, onRefused);
  }

  /** `payload`: the command's bytes as they came. */
  proposeClients(
    command: Command,
    payload: Uint8Array,
    reserved: boolean,
    onRefused: (refusal: Refusal) => void,
  ): void {
    this.propose(command, payload, reserved, null, onRefused);
  }

  /** What was not refused is in the log; its outcome comes from there. */
  settle(refused: Output["refused"]): void {
    for (const { id, code } of refused) {
      const refuse = this.refusals.get(id);
      this.refusals.delete(id);
      refuse?.(code === "overloaded" ? { code } : { code, leader: this.parts.leader() });
    }
    this.refusals.clear();
  }

  private propose(
    command: Command,
    payload: Uint8Array,
    reserved: boolean,
    decidedInTerm: Proposal["decidedInTerm"],
    onRefused: (refusal: Refusal) => void,
  ): void {
    const { loop, raft } = this.parts;
    const refusal = this.parts.gate(command.kind);
    if (refusal !== null) return onRefused(refusal);
    this.lastId += 1;
    this.refusals.set(this.lastId, onRefused);
    const proposal = { id: this.lastId, payload, reserved, decidedInTerm };
    raft.step({ kind: "propose", nowMs: loop.nowMs, proposal });
  }
}
