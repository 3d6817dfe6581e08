/** Outputs in words, one line for each thing that a node does. `=>` marks what waited for the disk. */
import type { ChangeOutcome, Entry, LogBase, Message, Outbound, Output, Position } from "../../src/index.js";
import { textOf } from "./codec.js";
import type { TestNode } from "./node.js";

export function outputLines(node: TestNode, output: Output): string[] {
  const lines: string[] = [];
  const say = (text: string): void => void lines.push(`${node.id} ${text}`);
  for (const { role, term, leader, reason } of output.roleChanges) {
    say(`is ${role} in term ${term}, leader ${leader ?? "none"}: ${reason}`);
  }
  if (output.configuration !== null) say(`configuration ${configurationText(output.configuration)}`);
  const writes = writesOf(output);
  if (writes.length > 0) say(`writes ${writes.join(", ")}`);
  if (output.install !== null) say(`installs the snapshot ${baseText(output.install)}`);
  if (output.committed.length > 0) say(`applies ${entriesText(output.committed)}`);
  for (const { id, index } of output.confirmed) say(`confirms request ${id} at ${index}`);
  for (const id of output.unconfirmed) say(`can't confirm request ${id}`);
  for (const { id, code } of output.refused) say(`refuses proposal ${id}: ${code}`);
  for (const outcome of output.changes) say(changeText(outcome));
  if (output.isRemoved) say("was removed");
  for (const { to, base, chunk } of output.snapshotReads) say(`reads chunk ${chunk} of ${baseText(base)} for ${to}`);
  return lines;
}

export function sendLines(node: TestNode, messages: readonly Outbound[], isAfterPersist: boolean): string[] {
  const arrow = isAfterPersist ? "=>" : "->";
  return messages.map(({ to, message }) => `${node.id} ${arrow} ${to} ${messageText(message)}`);
}

export function messageText(message: Message): string {
  return `${message.kind} term=${message.term}${detailsOf(message)}`;
}

function detailsOf(message: Message): string {
  switch (message.kind) {
    case "preVote":
      return ` last=${positionText(message.last)}`;
    case "vote":
      return ` last=${positionText(message.last)}${message.transfer ? " transfer" : ""}`;
    case "preVoteAnswer":
    case "voteAnswer":
      return message.granted ? " granted" : " refused";
    case "append":
      return ` after ${positionText(message.previous)} [${entriesText(message.entries)}] commit=${message.commitIndex}`;
    case "appendAccepted":
      return ` match=${message.matchIndex}`;
    case "appendRejected":
      return ` rejected=${message.rejected} hint=${positionText(message.hint)}`;
    case "heartbeat":
      return ` commit=${message.commitIndex} round=${message.round}`;
    case "heartbeatAnswer":
      return ` round=${message.round}`;
    case "snapshotChunk":
      return ` ${baseText(message.base)} chunk ${message.chunk} "${textOf(message.bytes)}"${message.done ? " done" : ""}`;
    case "snapshotAnswer":
      return ` of ${message.snapshotIndex} ${message.installed ? "installed" : `next=${message.next}`}`;
    case "timeoutNow":
      return "";
  }
}

function writesOf(output: Output): string[] {
  const writes: string[] = [];
  const { hardState, truncateFrom, entries, chunk } = output;
  if (hardState !== null) writes.push(`term=${hardState.term} vote=${hardState.votedFor ?? "none"}`);
  if (truncateFrom !== null) writes.push(`truncation from ${truncateFrom}`);
  if (entries.length > 0) writes.push(`entries ${entriesText(entries)}`);
  if (chunk !== null) writes.push(`chunk ${chunk.chunk} of ${baseText(chunk.base)}${chunk.done ? " done" : ""}`);
  return writes;
}

export function entriesText(entries: readonly Entry[]): string {
  return entries
    .map(
      (entry) =>
        `${positionText(entry)}${entry.kind === "command" ? ` ${textOf(entry.payload)}` : entry.kind === "noop" ? "" : ` ${entry.kind}`}`,
    )
    .join(", ");
}

/** index/term, the way positions are said in the tests. */
export function positionText({ index, term }: Position): string {
  return `${index}/${term}`;
}

function baseText(base: LogBase): string {
  return positionText(base.position);
}

export function configurationText({ voters, outgoing, learners, removed }: LogBase["configuration"]): string {
  const ids = (members: readonly { readonly id: string }[]): string => members.map((member) => member.id).join(" ");
  const parts = [`voters ${ids(voters)}`];
  if (outgoing.length > 0) parts.push(`outgoing ${ids(outgoing)}`);
  if (learners.length > 0) parts.push(`learners ${ids(learners)}`);
  if (removed.length > 0) parts.push(`removed ${removed.join(" ")}`);
  return parts.join(", ");
}

function changeText(outcome: ChangeOutcome): string {
  switch (outcome.kind) {
    case "refused":
      return `refuses change ${outcome.id}: ${outcome.code}${outcome.member === null ? "" : ` ${outcome.member}`}`;
    case "appended":
      return `has appended change ${outcome.id} at ${outcome.index}`;
    case "completed":
      return `has completed change ${outcome.id} at ${outcome.index}`;
    case "unknown":
      return `doesn't know the end of change ${outcome.id}`;
  }
}
