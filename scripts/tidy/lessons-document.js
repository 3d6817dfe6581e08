/**
 * docs/lessons.md names, for each row, tests that show it: they exist, and their files name the row. A row that a test names is there: so
 * nobody reads "A 12" in vain.
 */
import path from "node:path";

const document = "docs/lessons.md";

/**
 * @param {import("./tree.js").Tree} tree
 * @returns {import("./tree.js").Problem[]}
 */
export function checkLessonsDocument(tree) {
  if (!tree.has(document)) return [];
  const rows = rowsOf(tree.text(document));
  // Then the pattern is out of date.
  if (rows.length === 0) return [{ file: document, line: 1, text: "tidy finds no row here" }];
  const problems = rows.flatMap((row, at) =>
    [
      ...(rows.findIndex(({ name }) => name === row.name) < at ? [`${row.name} stands here twice`] : []),
      ...problemsOf(tree, row),
    ].map((text) => ({ file: document, line: row.line, text })),
  );
  return [...problems, ...unknownRows(tree, new Set(rows.map(({ name }) => name)))];
}

/**
 * @typedef {{ name: string, line: number, tests: { file: string, title: string }[] }} Row
 * @param {string} text
 * @returns {Row[]}
 */
function rowsOf(text) {
  return text.split("\n").flatMap((line, index) => {
    const name = /^\| (A \d+) \|/.exec(line)?.[1];
    if (name === undefined) return [];
    const named = [...line.matchAll(/\]\(([^)]+\.test\.[jt]s)\) "([^"]+)"/g)];
    const tests = named.map((match) => ({ file: path.posix.join("docs", match[1] ?? ""), title: match[2] ?? "" }));
    return [{ name, line: index + 1, tests }];
  });
}

/**
 * @param {import("./tree.js").Tree} tree
 * @param {Row} row
 * @returns {string[]}
 */
function problemsOf(tree, { name, tests }) {
  if (tests.length === 0) return [`${name} names no test`];
  return tests.flatMap(({ file, title }) => {
    if (!tree.has(file)) return [`${name}: ${file} does not exist`];
    const has = tree.tokens(file).some(({ kind, text }) => kind === "string" && text === title);
    if (!has) return [`${name}: ${file} has no test "${title}"`];
    return new RegExp(`\\b${name}\\b`).test(tree.text(file)) ? [] : [`${name}: ${file} does not name this row`];
  });
}

/**
 * @param {import("./tree.js").Tree} tree
 * @param {ReadonlySet<string>} known
 */
function unknownRows(tree, known) {
  // The checks' own tests hold made-up ones.
  const tests = tree.sources.filter((file) => /\.test\.[jt]s$/.test(file) && !file.startsWith("scripts/tidy/"));
  return tests.flatMap((file) =>
    tree
      .text(file)
      .split("\n")
      .flatMap((line, index) => {
        const comment = /(?:\/\/|\*).*/.exec(line)?.[0] ?? "";
        const named = [...comment.matchAll(/\bA \d+\b/g)].map((match) => match[0]);
        const unknown = named.filter((name) => !known.has(name));
        return unknown.map((name) => ({ file, line: index + 1, text: `${document} has no row ${name}` }));
      }),
  );
}
