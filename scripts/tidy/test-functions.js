/**
 * Functions in test files: at most 70 lines, as everywhere (oxlint checks the rest), but for the bodies of describe and suite, which
 * only hold tests together.
 *
 * @typedef {import("./tokens.js").Token} Token
 */
const linesMax = 70;
const containers = new Set(["describe", "suite"]);

/**
 * @param {import("./tree.js").Tree} tree
 * @returns {import("./tree.js").Problem[]}
 */
export function checkTestFunctions(tree) {
  const problems = [];
  for (const file of tree.sources.filter((source) => /\.test\.[jt]s$/.test(source))) {
    const tokens = tree.tokens(file);
    for (const open of bodies(tokens)) {
      const first = tokens[open];
      const lines = tokens[closing(tokens, open)].line - first.line + 1;
      if (lines > linesMax && !isContainer(tokens, open)) {
        problems.push({ file, line: first.line, text: `a function of ${lines} lines: more than ${linesMax}` });
      }
    }
  }
  return problems;
}

/**
 * Where the bodies of arrow functions and of `function`s begin.
 * @param {readonly Token[]} tokens
 * @returns {number[]}
 */
function bodies(tokens) {
  const found = [];
  for (const [index, token] of tokens.entries()) {
    if (token.text === "{" && isArrow(tokens, index - 1)) found.push(index);
    if (token.kind === "word" && token.text === "function") {
      const parameters = tokens.findIndex((other, at) => at > index && isMark(other, "("));
      const body = tokens.findIndex((other, at) => at > closing(tokens, parameters) && isMark(other, "{"));
      if (parameters !== -1 && body !== -1) found.push(body);
    }
  }
  return found;
}

/**
 * @param {readonly Token[]} tokens
 * @param {number} end
 */
function isArrow(tokens, end) {
  return tokens[end]?.kind === "mark" && tokens[end].text === ">" && tokens[end - 1]?.text === "=";
}

/**
 * Whether the arrow function whose body opens here is an argument of describe(...) or suite(...).
 * @param {readonly Token[]} tokens
 * @param {number} open
 */
function isContainer(tokens, open) {
  let depth = 0;
  for (let index = open - 1; index >= 0; index -= 1) {
    const token = tokens[index];
    if (token.kind !== "mark") continue;
    if (")]}".includes(token.text)) depth += 1;
    if ("([{".includes(token.text)) depth -= 1;
    if (depth < 0) return token.text === "(" && containers.has(tokens[index - 1]?.text ?? "");
    if (token.text === ";" && depth === 0) return false;
  }
  return false;
}

/**
 * @param {readonly Token[]} tokens
 * @param {number} open
 */
function closing(tokens, open) {
  let depth = 0;
  for (let index = open; index < tokens.length; index += 1) {
    const token = tokens[index];
    if (token.kind !== "mark") continue;
    if ("([{".includes(token.text)) depth += 1;
    if (")]}".includes(token.text)) depth -= 1;
    if (depth === 0) return index;
  }
  return tokens.length - 1;
}

/**
 * @param {Token} token
 * @param {string} text
 */
function isMark(token, text) {
  return token.kind === "mark" && token.text === text;
}
