/** Words that must not occur in the code of pure packages: time, chance and waiting come from outside. */
export const purePackages = ["raft", "lock", "wire", "checker"];
const bannedWords = new Set(["Date", "performance", "async", "await", "Promise", "localeCompare"]);

/**
 * @param {import("./tree.js").Tree} tree
 * @returns {import("./tree.js").Problem[]}
 */
export function checkPurity(tree) {
  const problems = [];
  const isPure = (/** @type {string} */ file) => purePackages.some((name) => file.startsWith(`packages/${name}/src/`));
  for (const file of tree.sources.filter(isPure)) {
    const tokens = tree.tokens(file);
    for (const [index, token] of tokens.entries()) {
      if (token.kind !== "word") continue;
      if (bannedWords.has(token.text)) {
        problems.push({ file, line: token.line, text: `${token.text} is banned in a pure package` });
      }
      if (token.text === "random" && tokens[index - 1]?.text === "." && tokens[index - 2]?.text === "Math") {
        problems.push({ file, line: token.line, text: "Math.random is banned in a pure package" });
      }
    }
  }
  return problems;
}
