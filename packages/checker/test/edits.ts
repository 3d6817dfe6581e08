/** Small lies told about a true history. */
import type { Effect, EventOf, Grant, History, HistoryEvent, LogCommand } from "../src/index.js";

type Kind = HistoryEvent["kind"];
type Test<K extends Kind> = (event: EventOf<K>) => boolean;

/** The position of the only, or the `nth`, event that fits. Throws when there is none. */
export function find<K extends Kind>(history: History, kind: K, test: Test<K> = () => true, nth = 0): number {
  const found = history.events.flatMap((event, at) => (isOf(event, kind) && test(event) ? [at] : []));
  const position = found.at(nth);
  if (position === undefined) throw new Error(`no such event: ${kind}`);
  return position;
}

export function eventAt<K extends Kind>(history: History, kind: K, position: number): EventOf<K> {
  const event = history.events[position];
  if (event === undefined || !isOf(event, kind)) throw new Error(`no ${kind} at ${position}`);
  return event;
}

export function change<K extends Kind>(
  history: History,
  kind: K,
  position: number,
  edit: (event: EventOf<K>) => Partial<EventOf<K>>,
): History {
  const event = eventAt(history, kind, position);
  return { ...history, events: history.events.with(position, { ...event, ...edit(event) }) };
}

export function without(history: History, ...positions: readonly number[]): History {
  return { ...history, events: history.events.filter((_, at) => !positions.includes(at)) };
}

export function insert(history: History, position: number, ...events: readonly HistoryEvent[]): History {
  return { ...history, events: history.events.toSpliced(position, 0, ...events) };
}

/** Puts an event elsewhere, with the time that the others have there. */
export function move(history: History, from: number, to: number): History {
  const event = history.events[from] as HistoryEvent;
  const { at } = history.events[to] as HistoryEvent;
  return insert(without(history, from), to, { ...event, at });
}

/** Moves what fits by so many milliseconds, to where it belongs then. */
export function shift(history: History, ms: number, test: (event: HistoryEvent) => boolean): History {
  const moved = history.events.map((event, at) => ({
    event: test(event) ? { ...event, at: event.at + ms } : event,
    at,
  }));
  moved.sort((a, b) => a.event.at - b.event.at || a.at - b.at);
  return { ...history, events: moved.map(({ event }) => event) };
}

/** Every node says something else of the entry. */
export function sayOf(
  history: History,
  index: number,
  edit: (effects: readonly Effect[]) => readonly Effect[],
): History {
  return {
    ...history,
    events: history.events.map((event) => {
      if (event.kind !== "applied" || event.index !== index || event.effects === null) return event;
      return { ...event, effects: edit(event.effects) };
    }),
  };
}

/** The index of the entry that holds the command. */
export function indexOf<K extends LogCommand["kind"]>(
  history: History,
  kind: K,
  test: (command: Extract<LogCommand, { readonly kind: K }>) => boolean = () => true,
  nth = 0,
): number {
  const position = find(
    history,
    "committed",
    ({ entry }) => entry.kind === "command" && isCommand(entry.command, kind) && test(entry.command),
    nth,
  );
  return eventAt(history, "committed", position).index;
}

export function granted(session: number, request: number, grants: readonly Grant[]): Effect[] {
  return [
    { kind: "outcome", session, request, outcome: { kind: "granted", grants, maxHoldMs: 0 } },
    { kind: "holdBegan", session, of: request, token: grants[0]?.token ?? 0, maxHoldMs: 0 },
  ];
}

/** Without what is said of this request. */
export function silent(effects: readonly Effect[], session: number, request: number): Effect[] {
  return effects.filter((effect) => {
    if (effect.kind === "outcome") return effect.session !== session || effect.request !== request;
    return effect.kind !== "holdBegan" || effect.session !== session || effect.of !== request;
  });
}

export function isOf<K extends Kind>(event: HistoryEvent, kind: K): event is EventOf<K> {
  return event.kind === kind;
}

function isCommand<K extends LogCommand["kind"]>(
  command: LogCommand,
  kind: K,
): command is Extract<LogCommand, { readonly kind: K }> {
  return command.kind === kind;
}
