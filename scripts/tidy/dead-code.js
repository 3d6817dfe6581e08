/** Files that nothing reaches, and exported names that no other file mentions. */
import { exportsOf, filesNamedBy, importsOf } from "./imports.js";

/**
 * @param {import("./tree.js").Tree} tree
 * @returns {import("./tree.js").Problem[]}
 */
export function checkDeadCode(tree) {
  return [...deadFiles(tree), ...unusedExports(tree)];
}

/** @param {import("./tree.js").Tree} tree */
function deadFiles(tree) {
  const reached = new Set();
  const queue = entries(tree);
  for (let file = queue.pop(); file !== undefined; file = queue.pop()) {
    if (reached.has(file)) continue;
    reached.add(file);
    if (tree.sources.includes(file)) queue.push(...filesNamedBy(tree, file));
  }
  return tree.sources
    .filter((file) => !reached.has(file))
    .map((file) => ({ file, line: 1, text: "dead file: no entry, test, script or document reaches it" }));
}

/**
 * Where reading begins: what packages export and install, tests, scripts named in a package.json, in .ci/run or in a document.
 * @param {import("./tree.js").Tree} tree
 */
function entries(tree) {
  const found = tree.packages.flatMap((name) => packageEntries(tree, name));
  found.push(...tree.sources.filter((file) => /\.test\.[jt]s$/.test(file) || file.startsWith("docs/examples/")));
  const naming = tree.paths.filter((file) => /(^|\/)package\.json$|\.md$|^\.ci\/run$/.test(file));
  const said = naming.map((file) => tree.text(file)).join("\n");
  const isRun = (/** @type {string} */ file) => said.includes(compiled(file));
  // Documents speak of sources in packages for other reasons than to run them.
  const isSaid = (/** @type {string} */ file) => said.includes(file) || isRun(file);
  found.push(...tree.sources.filter((file) => (/^(scripts|test)\//.test(file) ? isSaid(file) : isRun(file))));
  return found;
}

/**
 * test/story/story.ts runs as test/dist/story/story.js, packages/x/src/main.ts as packages/x/dist/src/main.js.
 * @param {string} file
 */
function compiled(file) {
  return file.replace(/^(test|packages\/[^/]+)\//, "$1/dist/").replace(/\.ts$/, ".js");
}

/**
 * @param {import("./tree.js").Tree} tree
 * @param {string} name
 */
function packageEntries(tree, name) {
  const manifest = tree.json(`packages/${name}/package.json`);
  const targets = Object.values(manifest.exports ?? {})
    .flatMap(targetsOf)
    .filter((each) => each.endsWith(".js"));
  const sources = targets.map((target) => target.replace("./dist/", "").replace(/\.js$/, ".ts"));
  const bins = Object.values(manifest.bin ?? {}).map(String);
  return [...sources, ...bins]
    .map((file) => `packages/${name}/${file.replace(/^\.\//, "")}`)
    .filter((file) => tree.has(file));
}

/**
 * The files that an entry of `exports` leads to, under whatever conditions.
 * @param {unknown} entry
 * @returns {string[]}
 */
function targetsOf(entry) {
  return typeof entry === "object" && entry !== null ? Object.values(entry).flatMap(targetsOf) : [String(entry)];
}

/** @param {import("./tree.js").Tree} tree */
function unusedExports(tree) {
  const open = publicFiles(tree);
  const words = new Map(tree.sources.map((file) => [file, wordsOf(tree, file)]));
  const problems = [];
  for (const file of tree.sources.filter((source) => /^packages\/[^/]+\/src\//.test(source) && !open.has(source))) {
    for (const { name, line, isType } of exportsOf(tree.tokens(file))) {
      const used = tree.sources.some((other) => other !== file && words.get(other)?.has(name));
      // A type may be exported for the sake of another export's signature.
      if (!used && !(isType && mentions(tree, file, name) > 1))
        problems.push({ file, line, text: `export ${name} is used by no other file` });
    }
  }
  return problems;
}

/**
 * Files whose every export is the package's: entries, and what they pass on with `export *`.
 * @param {import("./tree.js").Tree} tree
 */
function publicFiles(tree) {
  const open = new Set();
  const queue = tree.packages.flatMap((name) => packageEntries(tree, name));
  for (let file = queue.pop(); file !== undefined; file = queue.pop()) {
    if (open.has(file)) continue;
    open.add(file);
    const tokens = tree.tokens(file);
    const passedOn = importsOf(tokens).filter((each) => {
      const at = tokens.findIndex((token) => token.kind === "string" && token.line === each.line);
      return tokens[at - 2]?.text === "*" && tokens[at - 3]?.text === "export";
    });
    const names = passedOn.map((each) => each.specifier.replace(/^\.\//, "").replace(/\.js$/, ".ts"));
    const folder = file.slice(0, file.lastIndexOf("/"));
    queue.push(...names.map((name) => `${folder}/${name}`).filter((name) => tree.has(name)));
  }
  return open;
}

/**
 * @param {import("./tree.js").Tree} tree
 * @param {string} file
 */
function wordsOf(tree, file) {
  return new Set(tree.tokens(file).flatMap((token) => (token.kind === "word" ? [token.text] : [])));
}

/**
 * @param {import("./tree.js").Tree} tree
 * @param {string} file
 * @param {string} name
 */
function mentions(tree, file, name) {
  return tree.tokens(file).filter((token) => token.kind === "word" && token.text === name).length;
}
