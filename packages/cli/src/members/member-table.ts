/** Who belongs to the cluster, for people and for scripts. */
import type { MembersView, MemberView } from "@holdfast/client";
import { rangeText } from "../commands/status.js";
import { columns, plain, unpainted } from "../output.js";
import type { Paint, Style } from "../output.js";

/** joining: a learner that has not caught up. leaving: a voter that a change under way removes. */
export type ShownRole = "voter" | "learner" | "joining" | "leaving";

export interface MemberSummary extends Omit<MemberView, "role"> {
  readonly role: ShownRole;
}

export interface MembersSummary extends Omit<MembersView, "members"> {
  readonly members: readonly MemberSummary[];
}

export function membersSummary(view: MembersView): MembersSummary {
  return { ...view, members: view.members.map((member) => ({ ...member, role: shownRole(member) })) };
}

function shownRole({ role, isCaughtUp }: MemberView): ShownRole {
  if (role === "outgoing") return "leaving";
  if (role === "voter") return role;
  return isCaughtUp ? "learner" : "joining";
}

const head = ["NODE", "ROLE", "UP", "LOG %", "RUNS", "PEERS", "CLIENTS"];

const roleColumn = head.indexOf("ROLE");
const upColumn = head.indexOf("UP");

export function membersText(
  { clusterId, leader, members, removed, isChanging }: MembersSummary,
  paint: Paint = unpainted,
): string {
  const rows = members.map((member) => [
    plain(member.id),
    member.role,
    member.isUp ? "yes" : "no",
    String(member.percent),
    rangeText(member.versions),
    plain(member.peer),
    plain(member.client),
  ]);
  const styleOf = (row: number, column: number): Style | null => {
    if (column === upColumn && members[row]?.isUp === false) return "red";
    return column === roleColumn && ["joining", "leaving"].includes(members[row]?.role ?? "") ? "yellow" : null;
  };
  const state = isChanging ? "; a change is under way" : "";
  const gone = removed.length === 0 ? "" : `\nremoved, for ever: ${removed.map(plain).join(", ")}\n`;
  return `cluster ${plain(clusterId)}: ${plain(leader)} leads${state}\n\n${columns(head, rows, { paint, styleOf })}${gone}`;
}
