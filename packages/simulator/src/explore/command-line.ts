/** What `npm run explore` was asked for, and how it says what came of it. */
import { readWords, wholeNumber } from "../words.js";
import type { OptionKinds, Words } from "../words.js";
import { scopes as leaseScopes } from "./lease/scope.js";
import { scopes as raftScopes } from "./raft/scopes.js";

type Subject = "raft" | "lease";

const scopeNames: Readonly<Record<Subject, readonly string[]>> = {
  raft: Object.keys(raftScopes),
  lease: Object.keys(leaseScopes),
};

export const usage: string = `usage: npm run explore -- [raft|lease [scope ...]] [options]
Goes through all orders of events in small scopes; without a subject in those of both, without a scope in all of it.
  --minutes M    of each scope, at most (default 10)
  --states N     of each scope, at most (default 8000000)
  --breadth      raft's scopes breadth first, state by state
scopes of raft: ${scopeNames.raft.join(", ")}
scopes of lease: ${scopeNames.lease.join(", ")}`;

export interface Exploration {
  readonly kind: "exploration";
  readonly scopes: Readonly<Record<Subject, readonly string[]>>;
  readonly statesMax: number;
  /** Of each scope. */
  readonly msMax: number;
  readonly isBreadth: boolean;
}

export type Command = { readonly kind: "help" } | Exploration;

const kinds: OptionKinds = { states: "text", minutes: "text", breadth: "flag", help: "flag" };

export function readCommand(
  args: readonly string[],
): { readonly command: Command } | { readonly problems: readonly string[] } {
  const words = readWords(args, kinds);
  if (words.flags.has("help")) return { command: { kind: "help" } };
  const problems = [...words.problems];
  const scopes = scopesIn(words.rest, problems);
  const isBreadth = words.flags.has("breadth");
  if (isBreadth && words.rest[0] === "lease") problems.push("--breadth is of raft only");
  const statesMax = wholeNumber(words, "states", 8_000_000, problems);
  const command: Command = { kind: "exploration", scopes, statesMax, msMax: msIn(words, problems), isBreadth };
  return problems.length > 0 ? { problems } : { command };
}

function scopesIn([subject, ...names]: readonly string[], problems: string[]): Exploration["scopes"] {
  if (subject === undefined) return scopeNames;
  if (subject !== "raft" && subject !== "lease") {
    problems.push(`${subject} is nothing to explore; say raft or lease`);
    return scopeNames;
  }
  const known = scopeNames[subject];
  for (const name of names.filter((each) => !known.includes(each)))
    problems.push(`no scope of ${subject} is named ${name}; there are ${known.join(", ")}`);
  return { raft: [], lease: [], [subject]: names.length > 0 ? names : known };
}

function msIn(words: Words, problems: string[]): number {
  const text = words.texts.get("minutes") ?? "10";
  const minutes = /^\d+(\.\d+)?$/.test(text) ? Number(text) : 0;
  if (minutes > 0 && Number.isFinite(minutes)) return minutes * 60_000;
  problems.push(`--minutes ${text} is no number above 0`);
  return 0;
}

export interface Outcome {
  readonly name: string;
  /** No rule was broken, and none is in doubt. */
  readonly isSound: boolean;
  /** All of the scope was gone through. */
  readonly isComplete: boolean;
}

/** What the scopes of one subject came to. */
export function closingLine(outcomes: readonly Outcome[]): string {
  const broken = outcomes.filter(({ isSound }) => !isSound).map(({ name }) => name);
  if (broken.length > 0) return `rules are broken or in doubt in: ${broken.join(", ")}`;
  const cut = outcomes.filter(({ isComplete }) => !isComplete).map(({ name }) => name);
  if (cut.length > 0) return `no rule is broken in what was searched; cut: ${cut.join(", ")}`;
  return "no rule is broken; nothing was cut";
}
