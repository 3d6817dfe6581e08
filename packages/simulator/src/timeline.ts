/** A run as people read it: what each process said and what was done to it, and the events that a violation names. */
import type { RunResult } from "./run/run.js";

interface Line {
  readonly atMs: number;
  readonly text: string;
}

/** The last `max` lines. */
export function timelineOf(result: RunResult, max: number): string[] {
  const named = new Map<number, string>();
  for (const { rule, events } of result.verdict?.violations ?? []) for (const at of events) named.set(at, rule);
  const lines: Line[] = result.lines.map(({ atMs, process, text }) => ({ atMs, text: `${process.padEnd(6)} ${text}` }));
  for (const [position, event] of result.history.events.entries()) {
    const rule = named.get(position);
    if (rule === undefined && !isTold(event.kind)) continue;
    const { at, ...rest } = event;
    const mark = rule === undefined ? "" : `   <-- ${rule}`;
    lines.push({ atMs: at, text: `${"".padEnd(6)} ${JSON.stringify(rest)}${mark}` });
  }
  const sorted = lines.map((line, at) => ({ line, at })).sort((a, b) => a.line.atMs - b.line.atMs || a.at - b.at);
  return sorted.slice(-max).map(({ line }) => `${line.atMs.toFixed(2).padStart(10)} ${line.text}`);
}

function isTold(kind: string): boolean {
  return ["call", "return", "state", "committed", "sessionOpened", "sessionEnded", "guardWrite"].includes(kind);
}
