/**
 * Changes of members, step by step. Each step looks first at what the cluster says: so a command that was interrupted goes on where it was
 * when it is repeated, and what is done already is a success.
 */
import { ChangeRefusedError, HoldfastError } from "@holdfast/client";
import type { Holdfast, MembersChangeOptions, MembersView, MemberView } from "@holdfast/client";
import { CommandFailure } from "../command-failure.js";
import { plain } from "../output.js";
import { checkIdentity } from "./node-identity.js";
import type { NamedNode, NodeIdentity } from "./node-identity.js";

export interface StepParts {
  readonly holdfast: Pick<Holdfast, "members" | "changeMembers">;
  /** Null while nobody answers there. */
  identityAt(client: string): Promise<NodeIdentity | null>;
  /** One line for whoever waits. */
  tell(line: string): void;
  sleep(ms: number): Promise<unknown>;
}

/** Null when no instance was given by hand. */
interface NamedInstance extends NamedNode {
  readonly instance: string | null;
}

const pollMs = 500;

/** Nobody is told the same twice in a row. */
export class MemberSteps {
  private readonly parts: StepParts;
  private told = "";
  /** Something was changed by this command. */
  hasChanged = false;

  constructor(parts: StepParts) {
    this.parts = parts;
  }

  /** It is a learner, or a voter already. `instance`: when the node itself can't be asked from here. */
  async add(node: NamedNode, instance: string | null): Promise<void> {
    for (;;) {
      const view = await this.parts.holdfast.members();
      this.refuseRemoved(view, node.id);
      const member = find(view, node.id);
      if (member !== null) return await this.checkMember(member, { ...node, instance }, view.clusterId);
      const found = await this.instanceOf({ ...node, instance }, view.clusterId);
      if (found === null) {
        await this.wait(`${plain(node.id)}: nobody answers at ${plain(node.client)}`);
        continue;
      }
      await this.change({ add: [{ ...node, instance: found }] }, `${plain(node.id)} is a learner`);
    }
  }

  /** Until the leader would promote it, or it is a voter. */
  async untilCaughtUp(id: string): Promise<void> {
    for (;;) {
      const view = await this.parts.holdfast.members();
      this.refuseRemoved(view, id);
      const member = find(view, id);
      if (member === null) throw unknownMember(id);
      if (member.role !== "learner") return;
      if (member.isCaughtUp) return this.tell(`${plain(id)} has caught up`);
      await this.wait(`${plain(id)}: ${await this.stateOf(member)}`);
    }
  }

  /** It is a voter. */
  async promote(id: string, force: boolean): Promise<void> {
    await this.changeUntil(
      (view) => {
        this.refuseRemoved(view, id);
        const member = find(view, id);
        if (member === null) throw unknownMember(id);
        return member.role === "learner" ? { promote: [id], force } : null;
      },
      `${plain(id)} is a voter`,
    );
  }

  /** It is no member any more. */
  async remove(id: string, force: boolean): Promise<void> {
    await this.changeUntil(
      (view) => {
        const member = find(view, id);
        if (member === null && !view.removed.includes(id)) throw unknownMember(id);
        return member === null ? null : { remove: [id], force };
      },
      `${plain(id)} is removed`,
    );
  }

  /** One change: `node` votes, and `old` is gone. */
  async swap(old: string, id: string, force: boolean): Promise<void> {
    await this.changeUntil(
      (view) => {
        this.refuseRemoved(view, id);
        const member = find(view, id);
        if (member === null) throw unknownMember(id);
        const isOldThere = find(view, old) !== null;
        if (member.role === "learner") return { promote: [id], remove: isOldThere ? [old] : [], force };
        // Both are done in one change: a voter beside the old one came some other way, and a removal alone would cost the cluster a vote.
        if (isOldThere) throw votesAlready(id, old);
        return null;
      },
      `${plain(id)} is a voter, ${plain(old)} is removed`,
    );
  }

  /** Before anything is begun. */
  async checkReplaceable(old: string, id: string): Promise<void> {
    if (old === id)
      throw new CommandFailure("usage", "usage", `${plain(id)} can't take its own place: NEW is a new id`);
    const view = await this.parts.holdfast.members();
    if (find(view, old) === null && !view.removed.includes(old)) throw unknownMember(old);
  }

  private async changeUntil(planFor: (view: MembersView) => MembersChangeOptions | null, done: string): Promise<void> {
    for (;;) {
      const view = await this.parts.holdfast.members();
      if (view.isChanging) {
        await this.wait("another change of members is under way");
        continue;
      }
      const change = planFor(view);
      if (change === null) return;
      for (const id of change.promote ?? []) await this.untilCaughtUp(id);
      await this.change(change, done);
    }
  }

  /** What passes, and what isn't known, is looked at anew by the caller. */
  private async change(change: MembersChangeOptions, done: string): Promise<void> {
    try {
      await this.parts.holdfast.changeMembers(change);
      this.hasChanged = true;
      this.tell(done);
    } catch (error) {
      if (!mayPass(error)) throw inWords(error);
      await this.wait(error.message);
    }
  }

  private async checkMember(member: MemberView, node: NamedInstance, clusterId: string): Promise<void> {
    for (const address of ["peer", "client"] as const) {
      if (member[address] === node[address]) continue;
      const problem = `${plain(node.id)} is a member with --${address} ${plain(member[address])}, not ${plain(node[address])}`;
      throw new CommandFailure("error", "address_differs", problem);
    }
    if (node.instance !== null && node.instance !== member.instance) throw instanceDiffers(node.id);
    const found = await this.parts.identityAt(node.client);
    if (found === null) return;
    checkIdentity(found, node, clusterId);
    if (found.instance !== member.instance) throw instanceDiffers(node.id);
  }

  /** Of a learner, for whoever waits. Throws when another data directory has taken its place. */
  private async stateOf(member: MemberView): Promise<string> {
    if (member.isUp) return `learner at ${member.percent} %`;
    const found = await this.parts.identityAt(member.client);
    if (found === null) {
      const advice = `start it; if its directory is lost: holdfast member remove ${plain(member.id)}, and another id for the new one`;
      return `learner, and nobody answers at ${plain(member.client)}: ${advice}`;
    }
    if (found.id === member.id && found.instance !== member.instance) throw instanceDiffers(member.id);
    return "learner, not linked with the leader";
  }

  /** What the node itself says goes before what was given by hand. */
  private async instanceOf(node: NamedInstance, clusterId: string): Promise<string | null> {
    const found = await this.parts.identityAt(node.client);
    if (found === null) return node.instance;
    checkIdentity(found, node, clusterId);
    if (node.instance === null || node.instance === found.instance) return found.instance;
    const problem = `the node at ${plain(node.client)} has the instance ${plain(found.instance)}, not ${plain(node.instance)}`;
    throw new CommandFailure("error", "node_differs", problem);
  }

  private refuseRemoved(view: MembersView, id: string): void {
    if (!view.removed.includes(id)) return;
    const problem = `${plain(id)} was removed from this cluster, and an id never comes back: choose another`;
    throw new CommandFailure("error", "removed_id", problem);
  }

  private tell(line: string): void {
    if (line !== this.told) this.parts.tell(line);
    this.told = line;
  }

  private async wait(line: string): Promise<void> {
    this.tell(line);
    await this.parts.sleep(pollMs);
  }
}

function find(view: MembersView, id: string): MemberView | null {
  return view.members.find((member) => member.id === id) ?? null;
}

function unknownMember(id: string): CommandFailure {
  return new CommandFailure(
    "error",
    "unknown_member",
    `${plain(id)} is no member of this cluster: see holdfast member list`,
  );
}

function instanceDiffers(id: string): CommandFailure {
  const problem = `${plain(id)} is a member with another data directory: remove it, and add the new one under another id`;
  return new CommandFailure("error", "instance_differs", problem);
}

function votesAlready(id: string, old: string): CommandFailure {
  const problem = `${plain(id)} is a voter already, so it can't take the place of ${plain(old)}: name a new node, or see holdfast member remove`;
  return new CommandFailure("error", "already_member", problem);
}

/** The same change may go through later, or has gone through already. */
function mayPass(error: unknown): error is HoldfastError {
  if (!(error instanceof HoldfastError)) return false;
  if (error.code === "unknown_outcome") return true;
  if (!(error instanceof ChangeRefusedError)) return false;
  return ["change_in_progress", "not_caught_up", "already_member"].includes(error.reason);
}

function inWords(error: unknown): unknown {
  if (!(error instanceof ChangeRefusedError)) return error;
  const advice = error.reason === "would_lose_quorum" ? "; --force begins it all the same" : "";
  return new CommandFailure("error", error.reason, `${error.message}${advice}`);
}
