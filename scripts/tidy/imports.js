/**
 * What a file names: its imports (static, dynamic and re-exports), the files beside it that it names in a string (workers, child
 * processes, fixtures), and what it exports.
 *
 * @typedef {import("./tokens.js").Token} Token
 * @typedef {{ specifier: string, typeOnly: boolean, line: number }} Import
 */
import path from "node:path";

/**
 * @param {readonly Token[]} tokens
 * @returns {Import[]}
 */
export function importsOf(tokens) {
  const found = [];
  for (const [index, token] of tokens.entries()) {
    if (token.kind !== "string") continue;
    const before = tokens[index - 1];
    if (before?.kind === "word" && before.text === "import") {
      found.push({ specifier: token.text, typeOnly: false, line: token.line });
    } else if (before?.kind === "mark" && before.text === "(" && tokens[index - 2]?.text === "import") {
      found.push({ specifier: token.text, typeOnly: false, line: token.line });
    } else if (before?.kind === "word" && before.text === "from") {
      const start = statementStart(tokens, index - 1);
      if (start === -1) continue;
      found.push({ specifier: token.text, typeOnly: tokens[start + 1]?.text === "type", line: token.line });
    }
  }
  return found;
}

/**
 * The `import` or `export` that this `from` belongs to, -1 when it is another `from`.
 * @param {readonly Token[]} tokens
 * @param {number} from
 */
function statementStart(tokens, from) {
  for (let index = from - 1; index >= 0; index -= 1) {
    const token = tokens[index];
    if (token.kind === "word" && (token.text === "import" || token.text === "export")) return index;
    const belongs = token.kind === "word" || (token.kind === "mark" && "{},*".includes(token.text));
    if (!belongs) return -1;
  }
  return -1;
}

/**
 * Files of the tree that `file` names, by import or in a string such as "./child.js" or "../test/scenarios/a.txt".
 * @param {import("./tree.js").Tree} tree
 * @param {string} file
 * @returns {string[]}
 */
export function filesNamedBy(tree, file) {
  const named = new Set();
  for (const token of tree.tokens(file)) {
    if (token.kind !== "string" || !/^\.\.?\//.test(token.text)) continue;
    const target = path.posix.normalize(`${path.posix.dirname(file)}/${token.text}`);
    for (const candidate of sourcesFor(target)) if (tree.has(candidate)) named.add(candidate);
  }
  return [...named];
}

/**
 * Compiled code names compiled files: dist/src/x.js stands for src/x.ts.
 * @param {string} target
 */
function sourcesFor(target) {
  const fromDist = target.replace(/(^|\/)dist\//, "$1");
  return [target, fromDist].flatMap((name) => [name, name.replace(/\.js$/, ".ts")]);
}

const declarators = new Set(["const", "let", "function", "class", "interface", "type", "enum"]);
const types = new Set(["interface", "type"]);

/**
 * The names that a file declares and exports itself (`export const x`, `export { x }` without a `from`).
 * @param {readonly Token[]} tokens
 * @returns {{ name: string, line: number, isType: boolean }[]}
 */
export function exportsOf(tokens) {
  const names = [];
  for (const [index, token] of tokens.entries()) {
    if (token.kind !== "word" || token.text !== "export") continue;
    let at = index + 1;
    while (["async", "abstract", "declare"].includes(tokens[at]?.text ?? "")) at += 1;
    const word = tokens[at];
    if (word !== undefined && declarators.has(word.text) && tokens[at + 1]?.text !== "{") {
      const name = tokens[at + 1]?.text === "*" ? tokens[at + 2] : tokens[at + 1];
      if (name !== undefined) names.push({ name: name.text, line: name.line, isType: types.has(word.text) });
    }
  }
  return names;
}
