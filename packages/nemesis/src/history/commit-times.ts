/**
 * When each entry was committed, as late as can be: nobody saw it happen, but what follows from an entry comes after it. So an entry is put
 * right before the first thing seen that rests on it: a node that says so, an answer to a client. A rule that bounds a time from below then
 * never alarms without reason; one that bounds it from above alarms early by a look at the nodes at most.
 */
import type { HistoryEvent } from "@holdfast/checker";
import type { Replayed } from "./committed-log.js";

/** A node has said that it knows everything up to here to be committed. */
export interface CommitSeen {
  readonly at: number;
  readonly index: number;
}

export function commitTimes(
  replayed: readonly Replayed[],
  seen: readonly CommitSeen[],
  events: readonly HistoryEvent[],
  endAt: number,
): readonly number[] {
  const first = replayed[0]?.event.index ?? 1;
  const times = replayed.map(() => endAt);
  const note = (index: number | undefined, at: number): void => {
    const place = index === undefined ? -1 : Math.min(index - first, times.length - 1);
    const known = times[place];
    if (known !== undefined) times[place] = Math.min(known, at);
  };
  for (const { at, index } of seen) note(index, at);
  const causes = causesOf(replayed);
  for (const event of events) for (const index of indexesBehind(event, causes)) note(index, event.at);
  for (let place = times.length - 2; place >= 0; place -= 1) {
    times[place] = Math.min(times[place] ?? endAt, times[place + 1] ?? endAt);
  }
  return times;
}

/** "session request outcome" and "session ended" -> the entry. */
function causesOf(replayed: readonly Replayed[]): ReadonlyMap<string, number> {
  const causes = new Map<string, number>();
  const note = (key: string, index: number): void => {
    if (!causes.has(key)) causes.set(key, index);
  };
  for (const { event, effects } of replayed) {
    for (const effect of effects ?? []) {
      if (effect.kind === "outcome") note(`${effect.session} ${effect.request} ${effect.outcome.kind}`, event.index);
      if (effect.kind === "sessionEnded") note(`${effect.session} ended`, event.index);
    }
    // One that resumes is told what has become of its acquire, in the words for that.
    const command = event.entry.kind === "command" ? event.entry.command : null;
    if (command?.kind === "release") note(`${command.session} ${command.of} released`, event.index);
    if (command?.kind === "cancel") note(`${command.session} ${command.of} cancelled`, event.index);
  }
  return causes;
}

function indexesBehind(event: HistoryEvent, causes: ReadonlyMap<string, number>): readonly (number | undefined)[] {
  switch (event.kind) {
    case "told":
      return [causes.get(`${event.session} ${event.request} ${event.outcome.kind}`)];
    case "sessionOpened":
      return [event.session];
    case "sessionEnded":
      return event.by === "cluster" ? [causes.get(`${event.session} ended`)] : [];
    case "return":
      return event.result.kind === "acquired" ? event.result.grants.map(({ token }) => token) : [];
    default:
      return [];
  }
}
