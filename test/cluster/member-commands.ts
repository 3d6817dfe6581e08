/** The commands of a section of docs/operations.md, as words for the command line. */
import { readFileSync } from "node:fs";
import type { TestNode } from "../harness/cluster.js";

const page = new URL("../../../docs/operations.md", import.meta.url);

/** `holdfast member ...` of the section with this title; the manual's 10.0.0.14:7201 and :7101 are node n4's. */
export function commandsOf(title: string, nodes: readonly TestNode[]): string[][] {
  const [, section = ""] = readFileSync(page, "utf8").split(`\n### ${title}\n`);
  const [text = ""] = section.split(/\n##+ /);
  const lines = [...text.matchAll(/^ {4}holdfast (member .*)$/gm)].map((match) => match[1] ?? "");
  if (lines.length === 0) throw new Error(`docs/operations.md has no commands under "${title}"`);
  return lines.map((line) => line.split(" ").map((word) => addressIn(word, nodes)));
}

function addressIn(word: string, nodes: readonly TestNode[]): string {
  const match = /^10\.0\.0\.1(\d):(7201|7101)$/.exec(word);
  if (match === null) return word;
  const node = nodes.find(({ id }) => id === `n${match[1]}`);
  if (node === undefined) throw new Error(`the test has no node at ${word}`);
  return match[2] === "7201" ? node.peer : node.endpoint;
}
