/** `holdfast completion SHELL`, and what its scripts ask at each key. */
import { Argument } from "commander";
import type { Command } from "commander";
import { candidatesFor } from "../completion/candidates.js";
import type { Candidates } from "../completion/candidates.js";
import { completionScripts } from "../completion/scripts.js";
import { shellWords } from "../completion/shell-words.js";
import { withClient, withOutput } from "../context.js";
import type { Context } from "../context.js";
import type { Io } from "../io.js";
import { json, plain } from "../output.js";

/** A person waits for it at a key. */
const clusterMs = 1_000;
/** More than anybody reads. */
const namesMax = 200;

export function addCompletionCommands(program: Command, context: Context): void {
  withOutput(program.command("completion"))
    .description("print a script that completes commands, options and names of locks in a shell")
    .addArgument(new Argument("<shell>", "whose").choices(Object.keys(completionScripts)))
    .action((shell: string, options: { readonly json?: boolean }) => {
      const script = completionScripts[shell] ?? "";
      context.io.out(options.json === true ? json({ shell, script }) : script);
    });
  program
    .command("complete", { hidden: true })
    .argument("<line>", "the line up to the cursor")
    .action(async (line: string) => {
      const { programFor } = await import("../program.js");
      const words = shellWords(line).slice(1);
      const found = candidatesFor(await programFor(words, context), words);
      const { kind, words: offered } = await withNames(found, context.io);
      const lines = [kind, `${found.before}${found.word}`, ...offered.map((word) => `${found.before}${word}`)];
      context.io.out(`${lines.join("\n")}\n`);
    });
}

/** Names that the cluster knows. Without an answer there are none. */
async function withNames(found: Candidates, io: Io): Promise<Pick<Candidates, "kind" | "words">> {
  const { kind, word, endpoints } = found;
  if (kind !== "locks" && kind !== "nodes") return found;
  const options = { timeout: clusterMs, ...(endpoints === null ? {} : { endpoints }) };
  try {
    const names = await withClient(options, io, async (holdfast) => {
      if (kind === "locks") return (await holdfast.list({ prefix: word })).map(({ name }) => name);
      return (await holdfast.members()).members.map(({ id }) => id).filter((id) => id.startsWith(word));
    });
    // A name that a terminal would not show as it is can't be offered.
    return { kind: "words", words: names.filter((name) => plain(name) === name).slice(0, namesMax) };
  } catch {
    return { kind: "words", words: [] };
  }
}
