/** Histories as lines of JSON: the header, then one line for each event. Lines end with "\n"; empty ones are passed over. */
import { checkEvent, checkHeader } from "./event-fields.js";
import type { Check } from "./fields.js";
import type { History, HistoryEvent, HistoryHeader } from "./history.js";
import { HistoryError } from "./history-error.js";

/** One line, without its end. */
export function encodeHeader({ version, origin, nodes, electionTimeoutMs, firstIndex }: HistoryHeader): string {
  return JSON.stringify({ version, origin, nodes, electionTimeoutMs, firstIndex });
}

/** One line, without its end. */
export function encodeEvent(event: HistoryEvent): string {
  return JSON.stringify(event);
}

export function encodeHistory(history: History): string {
  return [encodeHeader(history), ...history.events.map(encodeEvent), ""].join("\n");
}

/** `line`: its number, from 1, for the error. Throws HistoryError. */
export function parseHeader(source: string, line: number): HistoryHeader {
  return parse(source, line, checkHeader) as HistoryHeader;
}

/** `line`: its number, from 1, for the error. Throws HistoryError. */
export function parseEvent(source: string, line: number): HistoryEvent {
  return parse(source, line, checkEvent) as HistoryEvent;
}

/** A whole file. Throws HistoryError at the first line that is no history. */
export function parseHistory(source: string): History {
  const lines = source.split("\n").map((each, at) => ({ text: each, line: at + 1 }));
  const [first, ...others] = lines.filter((each) => each.text.trim() !== "");
  if (first === undefined) throw new HistoryError(1, "", "a history begins with a header");
  return { ...parseHeader(first.text, first.line), events: others.map((each) => parseEvent(each.text, each.line)) };
}

function parse(source: string, line: number, check: Check): unknown {
  let value: unknown;
  try {
    value = JSON.parse(source);
  } catch (error) {
    throw new HistoryError(line, "", `is no JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
  const found = check(value, "");
  if (found !== null) throw new HistoryError(line, found.field, found.problem);
  return value;
}
