/** docs/testing.md names, as code, every fault, invariant, rule and bound of the simulator and the checker: a new one doesn't go untold. */
const document = "docs/testing.md";

/** Where the names stand, and how; `within`: only in this part of the file. */
const sources = [
  { file: "packages/simulator/src/run/fault-kinds.ts", what: "fault", names: /^ {2}(\w+): \{ family:/gm },
  { file: "packages/simulator/src/invariants/invariant-error.ts", what: "invariant", names: /^ {2}\| "([\w-]+)"/gm },
  { file: "packages/simulator/src/run/liveness.ts", what: "bound", names: /new StuckError\(\s*"([\w-]+)"/g },
  {
    file: "packages/checker/src/verdict.ts",
    what: "rule",
    names: /^ {2}"?([\w-]+)"?: "/gm,
    within: /ruleTexts = \{[^]*?\n\} as const/,
  },
];

/**
 * @param {import("./tree.js").Tree} tree
 * @returns {import("./tree.js").Problem[]}
 */
export function checkTestingDocument(tree) {
  if (!tree.has(document)) return [];
  const told = new Set([...tree.text(document).matchAll(/`([^`\n]+)`/g)].map((match) => match[1]));
  return sources
    .filter(({ file }) => tree.has(file))
    .flatMap(({ file, what, names, within }) => {
      const text = within === undefined ? tree.text(file) : (within.exec(tree.text(file))?.[0] ?? "");
      const found = [...text.matchAll(names)].map((match) => match[1] ?? "");
      // Then the pattern is out of date.
      if (found.length === 0) return [{ file, line: 1, text: `tidy finds no ${what} here` }];
      const untold = found.filter((name) => !told.has(name));
      return untold.map((name) => ({ file, line: 1, text: `${document} does not name the ${what} ${name}` }));
    });
}
