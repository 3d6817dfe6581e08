/** A cluster whose members a command changes, without nodes: what is asked of it, and what goes wrong, is a test's to say. */
import { ChangeRefusedError } from "@holdfast/client";
import type { ChangeRefusalReason, MembersChangeOptions, MembersView, MemberView } from "@holdfast/client";
import { MemberSteps } from "../../src/members/member-steps.js";
import type { NodeIdentity } from "../../src/members/node-identity.js";

export function addressesOf(id: string): { readonly id: string; readonly peer: string; readonly client: string } {
  return { id, peer: `${id}:7201`, client: `${id}:7101` };
}

function memberOf(id: string, role: MemberView["role"]): MemberView {
  return {
    ...addressesOf(id),
    instance: `i-${id}`,
    role,
    isUp: true,
    percent: 100,
    isCaughtUp: true,
    versions: { min: 1, max: 1 },
  };
}

export class FakeMembers {
  members: MemberView[] = ["n1", "n2", "n3"].map((id) => memberOf(id, "voter"));
  removed: string[] = [];
  isChanging = false;
  readonly lines: string[] = [];
  readonly asked: MembersChangeOptions[] = [];
  /** What nodes say of themselves, by their client address. */
  readonly identities = new Map<string, NodeIdentity>();
  /** Runs when the command waits. */
  onWait: () => void = () => {
    throw new Error("it waits for ever");
  };
  /** Before a change is made: throw to refuse it, or to lose its answer. */
  onChange: () => void = () => {};

  get steps(): MemberSteps {
    return new MemberSteps({
      holdfast: {
        members: () => Promise.resolve(this.view()),
        changeMembers: (change) => this.change(change),
      },
      identityAt: (client) => Promise.resolve(this.identities.get(client) ?? null),
      tell: (line) => this.lines.push(line),
      sleep: () => {
        this.onWait();
        return Promise.resolve();
      },
    });
  }

  /** A node waits there. */
  waits(id: string, changes: Partial<NodeIdentity> = {}): void {
    this.identities.set(addressesOf(id).client, {
      ...addressesOf(id),
      instance: `i-${id}`,
      clusterId: "c",
      ...changes,
    });
  }

  edit(id: string, changes: Partial<MemberView>): void {
    this.members = this.members.map((member) => (member.id === id ? { ...member, ...changes } : member));
  }

  roles(): string[] {
    return this.members.map(({ id, role }) => `${id} ${role}`);
  }

  apply({ add = [], promote = [], remove = [] }: MembersChangeOptions): void {
    for (const id of promote) this.edit(id, { role: "voter" });
    this.members = this.members.filter(({ id }) => !remove.includes(id));
    this.members.push(
      ...add.map(
        (member): MemberView => ({ ...memberOf(member.id, "learner"), ...member, isCaughtUp: false, percent: 0 }),
      ),
    );
    this.removed.push(...remove);
  }

  private view(): MembersView {
    const { members, removed, isChanging } = this;
    return { clusterId: "c", leader: "n1", members, removed, isChanging };
  }

  private change(change: MembersChangeOptions): Promise<number> {
    this.asked.push(change);
    try {
      this.onChange();
    } catch (error) {
      return Promise.reject(error instanceof Error ? error : new Error("unexpected"));
    }
    this.apply(change);
    return Promise.resolve(7);
  }
}

export function refuse(reason: ChangeRefusalReason, ...members: readonly string[]): never {
  throw new ChangeRefusedError(reason, members);
}
