/** Commands, options, files and links in the documents exist. Only code (spans and blocks) is read for commands. */
import path from "node:path";

/**
 * @param {import("./tree.js").Tree} tree
 * @returns {import("./tree.js").Problem[]}
 */
export function checkDocuments(tree) {
  const scripts = new Set(Object.keys(tree.json("package.json").scripts ?? {}));
  const cli = commandsOfCli(tree);
  const problems = [];
  for (const file of tree.paths.filter((each) => /^[A-Z]+\.md$|^docs\/.*\.md$/.test(each))) {
    for (const { code, line } of codeOf(tree.text(file))) {
      const texts = [...npmProblems(code, scripts), ...nodeProblems(tree, code), ...cliProblems(code, cli)];
      problems.push(...texts.map((text) => ({ file, line, text })));
    }
    problems.push(...deadLinks(tree, file));
  }
  return problems;
}

/**
 * The code spans and the lines of code blocks.
 * @param {string} text
 */
function codeOf(text) {
  const found = [];
  let inBlock = false;
  for (const [index, line] of text.split("\n").entries()) {
    if (/^\s*(```|~~~)/.test(line)) inBlock = !inBlock;
    else if (inBlock) found.push({ code: line, line: index + 1 });
    else for (const span of line.matchAll(/`([^`]+)`/g)) found.push({ code: span[1] ?? "", line: index + 1 });
  }
  return found;
}

/**
 * @param {string} code
 * @param {ReadonlySet<string>} scripts
 */
function npmProblems(code, scripts) {
  const named = [...code.matchAll(/\bnpm (?:run(?: --silent)? ([\w:-]+)|(test|start)\b)/g)].map(
    (match) => match[1] ?? match[2] ?? "",
  );
  return named.filter((name) => !scripts.has(name)).map((name) => `package.json has no script "${name}"`);
}

/**
 * @param {import("./tree.js").Tree} tree
 * @param {string} code
 */
function nodeProblems(tree, code) {
  const named = [...code.matchAll(/(?:^|[\s;&(])node (?:--[\w=-]+ )*((?:scripts|packages|docs|test)\/[\w./-]+)/g)].map(
    (match) => match[1] ?? "",
  );
  const exists = (/** @type {string} */ file) =>
    tree.has(file) || tree.has(file.replace("/dist/", "/").replace(/\.js$/, ".ts"));
  return named.filter((file) => !exists(file)).map((file) => `${file} does not exist`);
}

/**
 * Subcommands and options that the CLI defines: `.command("lock <name>")`, `.option("--ttl <duration>")`, `new Option("--x")`.
 * @param {import("./tree.js").Tree} tree
 */
function commandsOfCli(tree) {
  const commands = new Set(["help"]);
  const options = new Set(["--help", "--version"]);
  for (const file of tree.sources.filter((source) => source.startsWith("packages/cli/src/"))) {
    const tokens = tree.tokens(file);
    for (const [index, token] of tokens.entries()) {
      if (token.kind !== "string") continue;
      if (tokens[index - 1]?.text === "(" && tokens[index - 2]?.text === "command")
        commands.add(token.text.split(" ")[0] ?? "");
      for (const option of token.text.matchAll(/^(?:-\w, )?(--[a-z][a-z-]*)/g)) options.add(option[1] ?? "");
    }
  }
  return { commands, options };
}

/**
 * @param {string} code
 * @param {{ commands: ReadonlySet<string>, options: ReadonlySet<string> }} cli
 */
function cliProblems(code, cli) {
  const problems = [];
  for (const match of code.matchAll(/(?:^\s*(?:\$ )?|npx |[;&|] ?|ExecStart=\S*)holdfast(?:\.js)? ([^\n|;&]*)/g)) {
    const words = (match[1] ?? "").split(" -- ")[0]?.trim().split(/\s+/) ?? [];
    const command = words.find((word) => !word.startsWith("-"));
    if (command !== undefined && /^[a-z]+$/.test(command) && !cli.commands.has(command)) {
      problems.push(`holdfast has no command "${command}"`);
    }
    for (const word of words) {
      const option = /^\[?(--[a-z][a-z-]*)/.exec(word)?.[1];
      if (option !== undefined && !cli.options.has(option)) problems.push(`holdfast has no option "${option}"`);
    }
  }
  return problems;
}

/**
 * @param {import("./tree.js").Tree} tree
 * @param {string} file
 */
function deadLinks(tree, file) {
  const folders = new Set(
    tree.paths.flatMap((each) => each.split("/").map((_, index, all) => all.slice(0, index).join("/"))),
  );
  return tree
    .text(file)
    .split("\n")
    .flatMap((line, index) =>
      [...line.matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)].flatMap((match) => {
        const link = match[1] ?? "";
        if (/^[a-z]+:/.test(link) || link === "LICENSE") return [];
        const target = path.posix.normalize(path.posix.join(path.posix.dirname(file), link)).replace(/\/$/, "");
        if (tree.has(target) || folders.has(target) || target === "LICENSE") return [];
        return [{ file, line: index + 1, text: `dead link: ${link}` }];
      }),
    );
}
