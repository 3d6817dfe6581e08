/** What people and resuming clients are shown, inside of server messages. */
import type { LockView, ResumeView, SessionView, WaiterView } from "@holdfast/lock";
import type { LockChange, NodeAddress, NodeStatus, QueryResult } from "./client-messages.js";
import { assertNever } from "./assert.js";
import { anyText, badValue, count, fieldsOf, flag, list, mapList, nullable, positive } from "./fields.js";
import { grantList, grantsFrom, holderFields, holdersFrom, outcomeFields, outcomeFrom } from "./outcome-codec.js";
import { membersFields, membersFrom } from "./members-codec.js";
import { checkFields, checkFrom, keysFields, keysFrom, sequencerFields, sequencerFrom } from "./signing-codec.js";
import { firstVersions, versionFields, versionsFrom } from "./versions-codec.js";
import { changeKinds, modes } from "./words.js";

const resultKinds = {
  lock: 1,
  locks: 2,
  sessions: 3,
  status: 4,
  members: 5,
  sequencer: 6,
  check: 7,
  keys: 8,
} as const satisfies Record<QueryResult["kind"], number>;

export function addressFields(address: NodeAddress): string[] {
  return [anyText(address.id, "id"), anyText(address.client, "client")];
}

export function addressFrom(value: unknown): NodeAddress {
  const fields = fieldsOf(value, 2, "node");
  return { id: anyText(fields[0], "id"), client: anyText(fields[1], "client") };
}

export function addressOrNull(address: NodeAddress | null): string[] | null {
  return address === null ? null : addressFields(address);
}

export function addressesFrom(value: unknown): NodeAddress[] {
  return mapList(list(value, "nodes"), "nodes", addressFrom);
}

export function lockChangeFields({ name, change, token, slot }: LockChange): unknown[] {
  return [
    anyText(name, "name"),
    changeKinds.numberFor(change, "change"),
    positive(token, "token"),
    nullable(slot, "slot", count),
  ];
}

export function lockChangeFrom(value: unknown): LockChange {
  const fields = fieldsOf(value, 4, "change");
  return {
    name: anyText(fields[0], "name"),
    change: changeKinds.wordFor(fields[1], "change"),
    token: positive(fields[2], "token"),
    slot: nullable(fields[3], "slot", count),
  };
}

export function resultFields(result: QueryResult): unknown[] {
  switch (result.kind) {
    case "lock":
      return [resultKinds.lock, count(result.index, "index"), result.lock === null ? null : lockFields(result.lock)];
    case "locks":
      return [resultKinds.locks, count(result.index, "index"), result.locks.map(lockFields), flag(result.more, "more")];
    case "sessions":
      return [resultKinds.sessions, count(result.index, "index"), result.sessions.map(sessionFields)];
    case "members":
      return [resultKinds.members, count(result.index, "index"), membersFields(result.members)];
    case "sequencer":
      return [resultKinds.sequencer, ...sequencerFields(result)];
    case "check":
      return [resultKinds.check, ...checkFields(result)];
    case "keys":
      return [resultKinds.keys, ...keysFields(result)];
    case "status":
      return [resultKinds.status, statusFields(result.status)];
    default:
      return assertNever(result, "result");
  }
}

export function resultFrom(value: unknown): QueryResult {
  const fields = fieldsOf(value, 2, "result");
  switch (fields[0]) {
    case resultKinds.lock:
      return { kind: "lock", index: count(fields[1], "index"), lock: nullable(fields[2], "lock", lockFrom) };
    case resultKinds.locks:
      return {
        kind: "locks",
        index: count(fields[1], "index"),
        locks: mapList(list(fields[2], "locks"), "locks", lockFrom),
        more: flag(fields[3], "more"),
      };
    case resultKinds.sessions:
      return {
        kind: "sessions",
        index: count(fields[1], "index"),
        sessions: mapList(list(fields[2], "sessions"), "sessions", sessionFrom),
      };
    case resultKinds.members:
      return { kind: "members", index: count(fields[1], "index"), members: membersFrom(fields[2]) };
    case resultKinds.sequencer:
      return sequencerFrom(fields);
    case resultKinds.check:
      return checkFrom(fields);
    case resultKinds.keys:
      return keysFrom(fields);
    case resultKinds.status:
      return { kind: "status", status: statusFrom(fields[1]) };
    default:
      throw badValue("result", "is of a kind that this release doesn't know");
  }
}

function lockFields(lock: LockView): unknown[] {
  return [
    anyText(lock.name, "name"),
    lock.mode === null ? null : modes.numberFor(lock.mode, "mode"),
    count(lock.slots, "slots"),
    lock.holders.map(holderFields),
    lock.waiters.map(waiterFields),
    count(lock.waiterCount, "waiterCount"),
    lock.delays.map((delay) => [
      positive(delay.index, "index"),
      count(delay.delayMs, "delayMs"),
      nullable(delay.slot, "slot", count),
    ]),
    count(lock.holderCount, "holderCount"),
  ];
}

function lockFrom(value: unknown): LockView {
  const fields = fieldsOf(value, 8, "lock");
  return {
    name: anyText(fields[0], "name"),
    mode: nullable(fields[1], "mode", modes.wordFor),
    slots: count(fields[2], "slots"),
    holders: holdersFrom(fields[3]),
    waiters: mapList(list(fields[4], "waiters"), "waiters", waiterFrom),
    waiterCount: count(fields[5], "waiterCount"),
    delays: mapList(list(fields[6], "delays"), "delays", delayFrom),
    holderCount: count(fields[7], "holderCount"),
  };
}

function delayFrom(value: unknown): LockView["delays"][number] {
  const fields = fieldsOf(value, 3, "delay");
  return {
    index: positive(fields[0], "index"),
    delayMs: count(fields[1], "delayMs"),
    slot: nullable(fields[2], "slot", count),
  };
}

function waiterFields(waiter: WaiterView): unknown[] {
  return [
    positive(waiter.session, "session"),
    positive(waiter.request, "request"),
    modes.numberFor(waiter.mode, "mode"),
    anyText(waiter.info, "info"),
    mapList(waiter.names, "names", anyText),
    flag(waiter.reserves, "reserves"),
  ];
}

function waiterFrom(value: unknown): WaiterView {
  const fields = fieldsOf(value, 6, "waiter");
  return {
    session: positive(fields[0], "session"),
    request: positive(fields[1], "request"),
    mode: modes.wordFor(fields[2], "mode"),
    info: anyText(fields[3], "info"),
    names: mapList(list(fields[4], "names"), "names", anyText),
    reserves: flag(fields[5], "reserves"),
  };
}

function sessionFields(session: SessionView): unknown[] {
  return [
    positive(session.id, "id"),
    count(session.ttlMs, "ttlMs"),
    anyText(session.info, "info"),
    count(session.silence, "silence"),
    count(session.holds, "holds"),
    count(session.waits, "waits"),
  ];
}

function sessionFrom(value: unknown): SessionView {
  const fields = fieldsOf(value, 6, "session");
  return {
    id: positive(fields[0], "id"),
    ttlMs: count(fields[1], "ttlMs"),
    info: anyText(fields[2], "info"),
    silence: count(fields[3], "silence"),
    holds: count(fields[4], "holds"),
    waits: count(fields[5], "waits"),
  };
}

function statusFields(status: NodeStatus): unknown[] {
  return [
    anyText(status.id, "id"),
    anyText(status.role, "role"),
    count(status.term, "term"),
    nullable(status.leader, "leader", anyText),
    count(status.commitIndex, "commitIndex"),
    count(status.lastApplied, "lastApplied"),
    count(status.lastIndex, "lastIndex"),
    count(status.snapshotIndex, "snapshotIndex"),
    count(status.sessions, "sessions"),
    count(status.locks, "locks"),
    anyText(status.clusterId, "clusterId"),
    anyText(status.version, "version"),
    count(status.uptimeMs, "uptimeMs"),
    status.nodes.map(addressFields),
    [positive(status.clusterVersion, "clusterVersion"), ...versionFields(status.versions)],
  ];
}

function statusFrom(value: unknown): NodeStatus {
  const fields = fieldsOf(value, 14, "status");
  return {
    id: anyText(fields[0], "id"),
    role: anyText(fields[1], "role"),
    term: count(fields[2], "term"),
    leader: nullable(fields[3], "leader", anyText),
    commitIndex: count(fields[4], "commitIndex"),
    lastApplied: count(fields[5], "lastApplied"),
    lastIndex: count(fields[6], "lastIndex"),
    snapshotIndex: count(fields[7], "snapshotIndex"),
    sessions: count(fields[8], "sessions"),
    locks: count(fields[9], "locks"),
    clusterId: anyText(fields[10], "clusterId"),
    version: anyText(fields[11], "version"),
    uptimeMs: count(fields[12], "uptimeMs"),
    nodes: addressesFrom(fields[13]),
    ...(fields.length > 14 ? statusVersionsFrom(fields[14]) : { clusterVersion: 1, versions: firstVersions }),
  };
}

function statusVersionsFrom(value: unknown): Pick<NodeStatus, "clusterVersion" | "versions"> {
  const [clusterVersion, ...versions] = fieldsOf(value, 3, "versions");
  return { clusterVersion: positive(clusterVersion, "clusterVersion"), versions: versionsFrom(versions) };
}

/** The fields behind the kind's number. */
export function resumeFields(view: ResumeView): unknown[] {
  return [
    positive(view.session, "session"),
    count(view.ttlMs, "ttlMs"),
    view.holds.map((hold) => [
      positive(hold.request, "request"),
      grantList(hold.grants),
      count(hold.maxHoldMs, "maxHoldMs"),
    ]),
    mapList(view.waiting, "waiting", positive),
    view.outcomes.map((ended) => [positive(ended.request, "request"), outcomeFields(ended.outcome)]),
  ];
}

/** From a message's fields, the first of which is its kind's number. */
export function resumeFrom(value: unknown): ResumeView {
  const fields = fieldsOf(value, 6, "resumed");
  return {
    session: positive(fields[1], "session"),
    ttlMs: count(fields[2], "ttlMs"),
    holds: mapList(list(fields[3], "holds"), "holds", holdFrom),
    waiting: mapList(list(fields[4], "waiting"), "waiting", positive),
    outcomes: mapList(list(fields[5], "outcomes"), "outcomes", endedFrom),
  };
}

function holdFrom(value: unknown): ResumeView["holds"][number] {
  const fields = fieldsOf(value, 3, "hold");
  return {
    request: positive(fields[0], "request"),
    grants: grantsFrom(fields[1]),
    maxHoldMs: count(fields[2], "maxHoldMs"),
  };
}

function endedFrom(value: unknown): ResumeView["outcomes"][number] {
  const fields = fieldsOf(value, 2, "outcome");
  return { request: positive(fields[0], "request"), outcome: outcomeFrom(fields[1]) };
}
