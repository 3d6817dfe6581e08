/**
 * docs/operations.md as something that tests run: the commands of its sections, with a test's addresses and folders in place of the page's,
 * and its table of refusals. A command is an indented line; what follows on a # is a remark.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { runCli } from "../cli/cli-process.js";
import type { CliResult } from "../cli/cli-process.js";
import type { TestNode } from "./cluster.js";

const page = readFileSync(new URL("../../../docs/operations.md", import.meta.url), "utf8");

export interface Section {
  readonly title: string;
  /** Up to the next heading of any depth, without blocks of code: a file's content is no command. */
  readonly text: string;
}

export const sections: readonly Section[] = page
  .replaceAll(/^```.*?^```$/gms, "")
  .split(/^##+ /m)
  .slice(1)
  .map((text) => {
    const end = text.indexOf("\n");
    return { title: text.slice(0, end), text: text.slice(end) };
  });

/** As they stand on the page, in its order. */
export function linesOf({ text }: Section): string[] {
  return [...text.matchAll(/^ {4,}(\S.*?)(?: +#.*)?$/gm)].map((match) => match[1] ?? "");
}

export interface Place {
  readonly nodes?: readonly TestNode[];
  /** What stands on the page, and what the test has instead. A key is a whole word, or the beginning of a path. */
  readonly words?: Readonly<Record<string, string>>;
}

/**
 * The section's commands, word by word, the program first. There have to be `count`: whoever adds one to the page adds it to the section's
 * test. Throws too when an address or a path of the page would stay.
 */
export function commandsOf(title: string, count: number, place: Place): string[][] {
  const section = sections.find((one) => one.title === title);
  const lines = section === undefined ? [] : linesOf(section);
  assert.equal(lines.length, count, `docs/operations.md has other commands under "${title}":\n${lines.join("\n")}`);
  return lines.map((line) => wordsOf(line).map((word) => replaced(word, place)));
}

/** A `$(...)` may have blanks in it. */
function wordsOf(line: string): string[] {
  return [...line.matchAll(/(?:\$\([^)]*\)|\S)+/g)].map(([word]) => word);
}

function replaced(word: string, { nodes = [], words = {} }: Place): string {
  const own = words[word];
  if (own !== undefined) return own;
  if (word.startsWith("/")) {
    const start = Object.keys(words).find((key) => word.startsWith(key));
    if (start === undefined) throw new Error(`the test has nothing for ${word}`);
    return `${words[start]}${word.slice(start.length)}`;
  }
  return word.replaceAll(/10\.0\.0\.1\d:\d+|locks-(\d)\.example:\d+/g, (address) => addressIn(address, nodes));
}

/** 10.0.0.14 is node n4, locks-1.example is n1; 7201 is its port for peers. */
function addressIn(address: string, nodes: readonly TestNode[]): string {
  const [, number, port] = /(\d)(?:\.example)?:(\d+)$/.exec(address) ?? [];
  const node = nodes.find(({ id }) => id === `n${number}`);
  if (node === undefined) throw new Error(`the test has no node at ${address}`);
  return port === "7201" ? node.peer : node.endpoint;
}

/** Runs a command of the page to its end. */
export async function run(
  [program = "", ...words]: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<CliResult> {
  if (program === "holdfast") return runCli(words, environment);
  return new Promise((resolve) => {
    execFile(program, words, (error, out, err) =>
      resolve({ code: error === null ? 0 : (error.code ?? "?"), out, err }),
    );
  });
}

export interface Refusal {
  /** As the page has it. */
  readonly message: string;
  readonly codes: readonly number[];
  /** Finds it in what a node says, with other nodes, numbers and names in it. */
  readonly pattern: RegExp;
}

/** The messages in the table of "A node that refuses to start". */
export const refusals: readonly Refusal[] = refusalsOf(
  sections.find(({ title }) => title === "A node that refuses to start")?.text ?? "",
);

function refusalsOf(text: string): Refusal[] {
  const rows = [...text.matchAll(/^\| (.*`.*) \| (\d.*?) \|.*\|.*\|$/gm)];
  return rows.flatMap(([, messages = "", codes = ""]) =>
    [...messages.matchAll(/`([^`]+)`/g)].map(([, message = ""]) => ({
      message,
      codes: [...codes.matchAll(/\d+/g)].map(Number),
      pattern: new RegExp(fixedWordsOf(message).map(escaped).join(".*")),
    })),
  );
}

/** What of a message is the same each time. */
export function fixedWordsOf(message: string): string[] {
  const variable = /\.\.\.|\bFILE\b|\bn\d\b|\b\d+\b|"\w+"/;
  return message.split(variable).filter((part) => /\w/.test(part));
}

function escaped(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
}

/** What a node said when it ended with this code stands in the table, beside the code. */
export function assertInRefusals(said: string, code: number): void {
  const found = refusals.some(({ pattern, codes }) => codes.includes(code) && pattern.test(said));
  assert.ok(found, `docs/operations.md has no such refusal with exit code ${code}: ${said}`);
}
