/** Who belongs to the cluster, as the answer to a query: `[clusterId, leader, members, removed, isChanging]`. */
import type { MembersView, MemberView } from "./client-messages.js";
import { memberFields, memberFrom } from "./configuration-codec.js";
import { anyText, count, fieldsOf, flag, list, mapList } from "./fields.js";
import { versionFields, versionsFrom } from "./versions-codec.js";
import { memberRoles } from "./words.js";

export function membersFields(view: MembersView): unknown[] {
  return [
    anyText(view.clusterId, "clusterId"),
    anyText(view.leader, "leader"),
    view.members.map(viewFields),
    mapList(view.removed, "removed", anyText),
    flag(view.isChanging, "isChanging"),
  ];
}

export function membersFrom(value: unknown): MembersView {
  const fields = fieldsOf(value, 5, "members");
  return {
    clusterId: anyText(fields[0], "clusterId"),
    leader: anyText(fields[1], "leader"),
    members: mapList(list(fields[2], "members"), "members", viewFrom),
    removed: mapList(list(fields[3], "removed"), "removed", anyText),
    isChanging: flag(fields[4], "isChanging"),
  };
}

function viewFields(member: MemberView): unknown[] {
  return [
    memberFields(member),
    memberRoles.numberFor(member.role, "role"),
    flag(member.isUp, "isUp"),
    count(member.percent, "percent"),
    flag(member.isCaughtUp, "isCaughtUp"),
    member.versions === null ? null : versionFields(member.versions),
  ];
}

function viewFrom(value: unknown): MemberView {
  const fields = fieldsOf(value, 6, "member");
  return {
    ...memberFrom(fields[0]),
    role: memberRoles.wordFor(fields[1], "role"),
    isUp: flag(fields[2], "isUp"),
    percent: count(fields[3], "percent"),
    isCaughtUp: flag(fields[4], "isCaughtUp"),
    versions: fields[5] === null ? null : versionsFrom(fields[5]),
  };
}
