/** Who may import whom: the table of docs/architecture.md. A package not named there fails, so that it gets a row. */
import { purePackages } from "./purity.js";
import { importsOf } from "./imports.js";

/** "types": only `import type`. `null`: everything. */
const table = {
  raft: {},
  lock: {},
  wire: { raft: "types", lock: "types" },
  storage: { raft: "types", wire: "values" },
  server: { raft: "values", lock: "values", wire: "values", storage: "values" },
  client: { wire: "values", lock: "types" },
  fence: { wire: "values" },
  cli: { client: "values", server: "values", fence: "values", wire: "values" },
  checker: {},
  simulator: null,
  nemesis: null,
};
/** The only outside package a pure one may use. */
const allowedInPure = { wire: ["msgpackr"] };

/**
 * @param {import("./tree.js").Tree} tree
 * @returns {import("./tree.js").Problem[]}
 */
export function checkDependencies(tree) {
  return [...tree.packages.flatMap((name) => checkPackage(tree, name)), ...checkDirectories(tree)];
}

/**
 * @param {import("./tree.js").Tree} tree
 * @param {string} name
 */
function checkPackage(tree, name) {
  const manifestFile = `packages/${name}/package.json`;
  if (!(name in table))
    return [{ file: manifestFile, line: 1, text: `package ${name} has no row in scripts/tidy/dependencies.js` }];
  const problems = [];
  const manifest = tree.json(manifestFile);
  const declared = { ...manifest.dependencies, ...manifest.peerDependencies };
  const used = new Set();
  for (const file of tree.sources.filter((source) => source.startsWith(`packages/${name}/src/`))) {
    for (const each of importsOf(tree.tokens(file))) {
      const outside = packageOf(each.specifier);
      if (outside !== null) used.add(outside);
      const text = problemWith(tree, name, file, each, declared);
      if (text !== null) problems.push({ file, line: each.line, text });
    }
  }
  for (const dependency of Object.keys(declared)) {
    if (!used.has(dependency)) {
      problems.push({ file: manifestFile, line: 1, text: `dependency ${dependency} is imported by no file in src` });
    }
  }
  for (const [dependency, range] of Object.entries({ ...manifest.dependencies, ...manifest.devDependencies })) {
    if (!/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(String(range))) {
      problems.push({ file: manifestFile, line: 1, text: `dependency ${dependency} is not pinned exactly: ${range}` });
    }
  }
  return problems;
}

/**
 * @param {import("./tree.js").Tree} tree
 * @param {string} name
 * @param {string} file
 * @param {import("./imports.js").Import} each
 * @param {Record<string, string>} declared
 * @returns {string | null}
 */
function problemWith(tree, name, file, each, declared) {
  const { specifier, typeOnly } = each;
  if (specifier.startsWith(".")) return leavesSource(file, specifier) ? `${specifier} leaves the package's src` : null;
  const isPure = purePackages.includes(name);
  if (specifier.startsWith("node:")) return isPure ? `${specifier} in a pure package` : null;
  const outside = packageOf(specifier) ?? specifier;
  if (outside.startsWith("@holdfast/")) {
    const other = outside.slice("@holdfast/".length);
    const row = table[/** @type {keyof typeof table} */ (name)];
    const allowed = row === null ? "values" : /** @type {Record<string, string>} */ (row)[other];
    if (other === "simulator") return "nothing imports the simulator";
    if (allowed === undefined) return `${name} may not import ${other}`;
    if (allowed === "types" && !typeOnly) return `${name} may import only types of ${other} (import type)`;
    if (!isEntry(tree, other, specifier.slice(outside.length))) return `${specifier} is no entry of the package`;
    if (specifier === `${outside}/parts` && name !== "simulator") return `${specifier} is for the simulator alone`;
  } else if (isPure && !(/** @type {Record<string, string[]>} */ (allowedInPure[name] ?? []).includes(outside))) {
    return `${specifier} in a pure package`;
  }
  if (!(outside in declared)) return `${outside} is not among the package's dependencies`;
  return null;
}

/**
 * What the package's `exports` names; its index always.
 * @param {import("./tree.js").Tree} tree
 * @param {string} name
 * @param {string} subpath "" or "/parts"
 */
function isEntry(tree, name, subpath) {
  const manifest = `packages/${name}/package.json`;
  return subpath === "" || (tree.has(manifest) && `.${subpath}` in (tree.json(manifest).exports ?? {}));
}

/**
 * Tests reach their own package's src; another package only by its name.
 * @param {import("./tree.js").Tree} tree
 */
function checkDirectories(tree) {
  const problems = [];
  const tests = tree.sources.filter((file) => /^(packages\/[^/]+\/test|test)\//.test(file));
  for (const file of tests) {
    const home = /^packages\/[^/]+\//.exec(file)?.[0] ?? "test/";
    for (const each of importsOf(tree.tokens(file))) {
      if (!each.specifier.startsWith(".")) continue;
      const target = resolve(file, each.specifier);
      if (!target.startsWith(home)) {
        problems.push({
          file,
          line: each.line,
          text: `${each.specifier} leaves ${home}; import the package by its name`,
        });
      }
    }
  }
  return problems;
}

/**
 * @param {string} file
 * @param {string} specifier
 */
function leavesSource(file, specifier) {
  const source = file.split("/").slice(0, 3).join("/");
  return !resolve(file, specifier).startsWith(`${source}/`);
}

/**
 * @param {string} file
 * @param {string} specifier
 */
function resolve(file, specifier) {
  return new URL(specifier, `file:///${file}`).pathname.slice(1);
}

/**
 * The package of a bare specifier; null for relative files and Node's own modules.
 * @param {string} specifier
 */
function packageOf(specifier) {
  if (specifier.startsWith(".") || specifier.startsWith("node:")) return null;
  const parts = specifier.split("/");
  return specifier.startsWith("@") ? parts.slice(0, 2).join("/") : (parts[0] ?? specifier);
}
