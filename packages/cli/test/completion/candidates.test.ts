import assert from "node:assert/strict";
import { test } from "node:test";
import { candidatesFor } from "../../src/completion/candidates.js";
import type { Candidates } from "../../src/completion/candidates.js";
import { shellWords } from "../../src/completion/shell-words.js";
import { programFor } from "../../src/program.js";
import { MemoryIo } from "../memory-io.js";

async function candidates(line: string): Promise<Candidates> {
  const words = shellWords(line).slice(1);
  const program = await programFor(words, { io: new MemoryIo(), setExitCode: () => undefined });
  return candidatesFor(program, words);
}

async function offered(line: string): Promise<string> {
  const { kind, before, word, words } = await candidates(line);
  return kind === "words" ? words.map((each) => before + each).join(" ") : `${kind} ${before}${word}`;
}

test("what can stand at the end of a line", async () => {
  const table: [string, string][] = [
    ["holdfast sta", "status"],
    ["holdfast comp", "completion"],
    ["holdfast member re", "remove replace"],
    ["holdfast member remove ", "nodes "],
    ["holdfast member remove n", "nodes n"],
    ["holdfast lock --t", "--timeout --ttl"],
    ["holdfast lock --ttl ", ""],
    ["holdfast lock --ttl 10s doc", "locks doc"],
    ["holdfast lock --ttl=10s doc", "locks doc"],
    ["holdfast lock --shared 'doc: ", "locks doc: "],
    ["holdfast lock doc ", "--"],
    ["holdfast lock doc -- ", "command "],
    ["holdfast lock doc -- vi", "command vi"],
    ["holdfast lock doc -- cat --ttl", "files --ttl"],
    ["holdfast elect scheduler -- ./r", "command ./r"],
    ["holdfast show doc:4", "locks doc:4"],
    ["holdfast show doc:42 ", "--"],
    ["holdfast node --config clu", "files clu"],
    ["holdfast node --config=clu", "files --config=clu"],
    ["holdfast node --data ", "files "],
    ["holdfast backup ", "files "],
    ["holdfast completion ", "bash zsh fish"],
    ["holdfast no-such-command ", ""],
    ["holdfast status --no-such=", ""],
  ];
  for (const [line, expected] of table) assert.equal(await offered(line), expected, line);
  assert.match(await offered("holdfast "), /^dev node lock elect status .* completion$/);
  assert.match(await offered("holdfast ls -"), /--json --endpoints --timeout --help$/);
});

test("the cluster that the line names is the one that is asked for names", async () => {
  const endpoints = async (line: string): Promise<string | null> => (await candidates(line)).endpoints;
  assert.equal(await endpoints("holdfast show --endpoints=a:1 doc"), "a:1");
  assert.equal(await endpoints("holdfast show doc"), null);
});

test("a line is split as a shell does it", () => {
  const table: [string, string[]][] = [
    ["", [""]],
    ["a  b", ["a", "b"]],
    ["a ", ["a", ""]],
    ["a 'b c' \"d e\"f", ["a", "b c", "d ef"]],
    ["a 'b c", ["a", "b c"]],
    ['a "b\\"c\\d', ["a", 'b"c\\d']],
    ["a b\\ c\\", ["a", "b c"]],
    ["a '' \"\" b", ["a", "", "", "b"]],
    ["doc:42 x=y", ["doc:42", "x=y"]],
  ];
  for (const [line, words] of table) assert.deepEqual(shellWords(line), words, line);
});
