/**
 * Who votes, as a log entry's payload, in a snapshot's base and in `formed`: `[voters, outgoing, learners, removed]`.
 */
import type { Configuration, Member } from "@holdfast/raft";
import { exactFieldsOf, id, listUpTo, mapList, text } from "./fields.js";
import { limits } from "./limits.js";
import { WireError } from "./wire-error.js";

export function configurationFields(configuration: Configuration): unknown[] {
  return [
    memberList(configuration.voters, "voters"),
    memberList(configuration.outgoing, "outgoing"),
    memberList(configuration.learners, "learners"),
    mapList(listUpTo(configuration.removed, limits.removedMax, "removed"), "removed", id),
  ];
}

export function configurationFrom(value: unknown): Configuration {
  const fields = exactFieldsOf(value, 4, "configuration");
  const configuration = {
    voters: membersFrom(fields[0], "voters"),
    outgoing: membersFrom(fields[1], "outgoing"),
    learners: membersFrom(fields[2], "learners"),
    removed: mapList(listUpTo(fields[3], limits.removedMax, "removed"), "removed", id),
  };
  return configuration;
}

function memberList(members: readonly Member[], field: string): unknown[] {
  refuseTwice(members, field);
  return mapList(listUpTo(members, limits.membersMax, field), field, (member) => memberFields(member as Member));
}

/** One of them, where it stands alone too. */
export function memberFields(member: Member): string[] {
  return [
    id(member.id, "id"),
    id(member.instance, "instance"),
    address(member.peer, "peer"),
    address(member.client, "client"),
  ];
}

function membersFrom(value: unknown, field: string): Member[] {
  const members = mapList(listUpTo(value, limits.membersMax, field), field, memberFrom);
  refuseTwice(members, field);
  return members;
}

export function memberFrom(value: unknown): Member {
  const fields = exactFieldsOf(value, 4, "member");
  return {
    id: id(fields[0], "id"),
    instance: id(fields[1], "instance"),
    peer: address(fields[2], "peer"),
    client: address(fields[3], "client"),
  };
}

/** One node with two votes would make two majorities possible. */
function refuseTwice(members: readonly Member[], field: string): void {
  if (new Set(members.map((member) => member.id)).size !== members.length) {
    throw new WireError("bad_value", field, "has a member twice");
  }
}

function address(value: unknown, field: string): string {
  return text(value, 1, limits.addressBytesMax, field);
}
