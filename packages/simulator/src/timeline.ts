/** A run as people read it: what each process said and what was done to it, and the events that a violation names. */
import type { RunResult } from "./run/run.js";

export interface Timeline {
  readonly lines: readonly string[];
  /** Where the first line stands that a broken rule names; null when no rule is broken. */
  readonly firstMarked: number | null;
}

interface Line {
  readonly atMs: number;
  readonly text: string;
  /** Rules that are broken here. */
  readonly rules: readonly string[];
}

type Shown = Pick<RunResult, "lines" | "history" | "problems" | "verdict">;

export function timelineOf(result: Shown): Timeline {
  const named = namedIn(result);
  const lines: Line[] = result.lines.map(({ atMs, process, text }) => {
    return { atMs, text: `${process.padEnd(6)} ${text}`, rules: [] };
  });
  for (const [position, event] of result.history.events.entries()) {
    const rules = named.get(position) ?? [];
    if (rules.length === 0 && !isTold(event.kind)) continue;
    const { at, ...rest } = event;
    lines.push({ atMs: at, text: `${"".padEnd(6)} ${JSON.stringify(rest)}`, rules });
  }
  // Stable: of one moment, what processes said comes first.
  const sorted = lines.sort((a, b) => a.atMs - b.atMs);
  const last = sorted.at(-1);
  if (last !== undefined) sorted[sorted.length - 1] = { ...last, rules: [...last.rules, ...unplacedIn(result)] };
  const firstMarked = sorted.findIndex(({ rules }) => rules.length > 0);
  return { lines: sorted.map(shown), firstMarked: firstMarked === -1 ? null : firstMarked };
}

/** At most so many lines: around the first marked one, most of them before it; without one the last. Says so when others are left out. */
export function windowOf({ lines, firstMarked }: Timeline, max: number): string[] {
  const total = lines.length;
  if (total <= max) return [...lines];
  const after = Math.floor(max / 4);
  const end = firstMarked === null ? total : Math.min(total, Math.max(max, firstMarked + 1 + after));
  const begin = end - max;
  return [...lines.slice(begin, end), `lines ${begin + 1} to ${end} of ${total}; --lines N for more`];
}

/** By position of an event: the rules of the violations that name it. */
function namedIn({ verdict }: Shown): ReadonlyMap<number, readonly string[]> {
  const named = new Map<number, readonly string[]>();
  for (const { rule, events } of verdict?.violations ?? []) {
    for (const at of events) named.set(at, [...new Set([...(named.get(at) ?? []), rule])]);
  }
  return named;
}

/** Rules whose violations name no event: what was thrown ended the run, so its place is the last line. */
function unplacedIn({ problems, verdict }: Shown): readonly string[] {
  const placed = new Set<string>();
  for (const { rule, events } of verdict?.violations ?? []) if (events.length > 0) placed.add(rule);
  return [...new Set(problems.map(({ rule }) => rule).filter((rule) => !placed.has(rule)))];
}

function shown({ atMs, text, rules }: Line): string {
  const mark = rules.length === 0 ? "" : `   <-- ${rules.join(", ")}`;
  return `${atMs.toFixed(2).padStart(10)} ${text}${mark}`;
}

function isTold(kind: string): boolean {
  return ["call", "return", "state", "committed", "sessionOpened", "sessionEnded", "guardWrite"].includes(kind);
}
