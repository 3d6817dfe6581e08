/**
 * docs/operations.md holds no command that no test runs, and its table of refusals no message that no node gives. What runs is listed
 * here; that it runs is those tests' matter.
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { exitCodes } from "@holdfast/server";
import { fixedWordsOf, linesOf, refusals, sections } from "../harness/operations-page.js";

const top = fileURLToPath(new URL("../../../", import.meta.url));

/** Each section with commands, and who runs them. */
const testOf: Readonly<Record<string, string>> = {
  "Three machines": "test/cluster/operations.test.ts",
  Doctor: "test/cluster/doctor.test.ts",
  "Rolling upgrade": "test/cluster/upgrade.test.ts",
  "Keys for sequencers": "test/cluster/sequencers.test.ts",
  Members: "test/cluster/member.test.ts",
  "Replace a dead node": "test/cluster/member.test.ts",
  "From 1 or 3 to 5": "test/cluster/member.test.ts",
  "Move the cluster to other machines": "test/cluster/member.test.ts",
  "Disk full": "test/cluster/operations.test.ts",
  Backup: "test/cluster/backup.test.ts",
  Restore: "test/cluster/backup.test.ts",
  "Lost majority": "test/cluster/backup.test.ts",
  "A cluster that was lost": "test/cluster/operations.test.ts",
};

describe("the commands of docs/operations.md", () => {
  const withCommands = sections.filter((section) => linesOf(section).length > 0);

  test("stand in sections that have a test, and each section of the list has some", () => {
    assert.deepEqual(withCommands.map(({ title }) => title).sort(), Object.keys(testOf).sort());
  });

  for (const section of withCommands) {
    const { title } = section;
    const lines = linesOf(section);
    const file = testOf[title] ?? "";
    test(`${title}: ${lines.length}, in ${file}`, () => {
      const source = readFileSync(join(top, file), "utf8");
      // A test that takes another number of commands from the page fails by itself.
      const taken = new RegExp(String.raw`"${title}",\s*${lines.length}\b`);
      assert.match(source, taken, `not all are run there:\n${lines.join("\n")}`);
      for (const line of lines) assert.match(line, /^(holdfast|df|du|cp|mv) /, "is a command");
    });
  }

  test("a command that stands in the midst of a sentence is only spoken of: it has no addresses and no folders", () => {
    for (const { text } of sections) {
      const prose = text.replaceAll(/^ {4,}.*$/gm, "");
      for (const [, command = ""] of prose.matchAll(/`(holdfast [^`]*)`/g))
        assert.doesNotMatch(command, /\/|\d:\d/, `${command}: give it a line of its own, and run it in a test`);
    }
  });
});

describe("the messages of A node that refuses to start", () => {
  const pieces = ["cli", "lock", "server", "storage"].flatMap((name) => piecesIn(join(top, "packages", name, "src")));
  const known = new Set(Object.values(exitCodes).map(({ code }) => code));

  for (const { message, codes } of refusals) {
    test(`${message} (${codes.join(", ")})`, () => {
      for (const words of fixedWordsOf(message))
        assert.ok(isSaid(words, pieces), `no node says ${JSON.stringify(words)}`);
      assert.ok(codes.length > 0 && codes.every((code) => known.has(code)));
    });
  }

  test("every exit code of a node that a person has to look at is there", () => {
    const told = new Set(refusals.flatMap(({ codes }) => codes));
    const needed = [69, 73, 74, 77, 78, 79, 80, 81, 82, 83, 84];
    assert.deepEqual(
      needed.filter((code) => !told.has(code)),
      [],
    );
  });
});

/** What the programs in a folder say, in the pieces in which it stands there: a template's `${...}` are between two of them. */
function piecesIn(folder: string): string[] {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const codes = files.map((file) => readFileSync(join(file.parentPath, file.name), "utf8"));
  return [...new Set(codes.flatMap((code) => code.split(/["`]|\$\{|\}/)))].filter((piece) => piece !== "");
}

/** They stand in one piece, or begin with the end of one and go on with others. */
function isSaid(words: string, pieces: readonly string[]): boolean {
  if (pieces.some((piece) => piece.includes(words))) return true;
  const starts = Array.from({ length: words.length - 1 }, (_, at) => at + 1);
  return starts.some(
    (at) => pieces.some((piece) => piece.endsWith(words.slice(0, at))) && goesOn(words.slice(at), pieces),
  );
}

function goesOn(words: string, pieces: readonly string[]): boolean {
  if (pieces.some((piece) => piece.startsWith(words))) return true;
  return pieces.some((piece) => words.startsWith(piece) && goesOn(words.slice(piece.length), pieces));
}
