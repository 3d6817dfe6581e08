/** Durations as people type them: "500ms", "10s", "1.5m", "2h". One place parses them for every option. */
import { InvalidArgumentError, Option } from "commander";

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

export interface DurationBounds {
  readonly minMs: number;
  readonly maxMs: number;
}

/** Whole milliseconds, or a sentence that says what is wrong. */
export function parseDuration(text: string, bounds: DurationBounds): number | string {
  const match = /^(\d{1,15}(?:\.\d{1,6})?)(ms|s|m|h)$/.exec(text);
  const unit = unitMs[match?.[2] ?? ""];
  if (match === null || unit === undefined) return `"${text}" is no duration; write 500ms, 10s, 2m or 1h`;
  const ms = Number(match[1]) * unit;
  if (!Number.isInteger(ms)) return `"${text}" is not a whole number of milliseconds`;
  if (ms < bounds.minMs || ms > bounds.maxMs) {
    return `"${text}" is out of bounds: from ${formatDuration(bounds.minMs)} to ${formatDuration(bounds.maxMs)}`;
  }
  return ms;
}

/** A parser for commander's options; commander puts the option's name before the sentence. */
export function durationOption(bounds: DurationBounds): (text: string) => number {
  return (text) => {
    const parsed = parseDuration(text, bounds);
    if (typeof parsed === "string") throw new InvalidArgumentError(parsed);
    return parsed;
  };
}

/** An option whose default is shown in the help as it would be typed. */
export function durationFlag(flags: string, description: string, bounds: DurationBounds, defaultMs: number): Option {
  return new Option(flags, description).argParser(durationOption(bounds)).default(defaultMs, formatDuration(defaultMs));
}

/** In the largest unit that keeps it whole: 90000 is "90s", 120000 is "2m". */
export function formatDuration(ms: number): string {
  for (const unit of ["h", "m", "s"]) {
    const size = unitMs[unit] ?? 1;
    if (ms >= size && ms % size === 0) return `${ms / size}${unit}`;
  }
  return `${Math.round(ms)}ms`;
}

/** A parser for whole numbers within bounds. */
export function integerOption(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
    if (!(value >= min && value <= max))
      throw new InvalidArgumentError(`"${text}" is no whole number from ${min} to ${max}`);
    return value;
  };
}
