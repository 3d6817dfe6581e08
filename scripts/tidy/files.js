/** Length of files (an alarm, no failure: functions are held to 70 lines by oxlint), forgotten `only`, notes of work left undone. */
const linesMax = 400;

/**
 * @param {import("./tree.js").Tree} tree
 * @returns {import("./tree.js").Problem[]}
 */
export function alarmLongFiles(tree) {
  return tree.sources.flatMap((file) => {
    const lines = tree.text(file).trimEnd().split("\n").length;
    return lines > linesMax
      ? [{ file, line: lines, text: `${lines} lines: more than ${linesMax}, split it by subject` }]
      : [];
  });
}

/**
 * @param {import("./tree.js").Tree} tree
 * @returns {import("./tree.js").Problem[]}
 */
export function checkFiles(tree) {
  return tree.sources.flatMap((file) => [...onlyTests(tree, file), ...leftUndone(tree, file)]);
}

/**
 * @param {import("./tree.js").Tree} tree
 * @param {string} file
 */
function onlyTests(tree, file) {
  if (!/\.test\.[jt]s$/.test(file)) return [];
  const tokens = tree.tokens(file);
  return tokens.flatMap((token, index) => {
    const isOnly = token.text === "only" && tokens[index - 1]?.text === "." && tokens[index + 1]?.text === "(";
    return isOnly ? [{ file, line: token.line, text: "a test with .only hides the others" }] : [];
  });
}

/**
 * @param {import("./tree.js").Tree} tree
 * @param {string} file
 */
function leftUndone(tree, file) {
  const note = new RegExp(`\\/\\/.*\\b(${["TO" + "DO", "FIX" + "ME", "XX" + "X"].join("|")})\\b`);
  return tree
    .text(file)
    .split("\n")
    .flatMap((line, index) => {
      return note.test(line) ? [{ file, line: index + 1, text: "work left undone belongs in an issue" }] : [];
    });
}
