/** What can stand at the end of a command line, as the commands themselves declare it. */
import type { Argument, Command, Option } from "commander";

/** What a value is, where a list of words isn't all: the shell or the cluster knows those. */
export type ValueKind =
  | "words"
  /** A program; what follows it is the program's. */
  | "command"
  | "files"
  | "locks"
  | "nodes";

export interface Candidates {
  readonly kind: ValueKind;
  /** Of kind "words": those that begin with `word`. */
  readonly words: readonly string[];
  /** What is completed: the last word, or the value in `--option=value`. */
  readonly word: string;
  /** Stands before each candidate: `--option=`, or nothing. */
  readonly before: string;
  /** What the words before say of the cluster to ask. */
  readonly endpoints: string | null;
}

/** By the placeholders in the help: <name>, <file>, ... */
const kinds: Readonly<Record<string, ValueKind>> = {
  name: "locks",
  prefix: "locks",
  file: "files",
  folder: "files",
  id: "nodes",
  old: "nodes",
};

/** `words`: all after the program's name, the last one begun, or empty. */
export function candidatesFor(program: Command, words: readonly string[]): Candidates {
  const last = words.at(-1) ?? "";
  const walk = new Walk(program);
  for (const word of words.slice(0, -1)) walk.take(word);
  const found = walk.next(last);
  return { ...found, endpoints: walk.endpoints };
}

class Walk {
  endpoints: string | null = null;
  #command: Command;
  /** Waits for its value. */
  #option: Option | null = null;
  #operands = 0;
  /** Words after `--`. */
  #own: number | null = null;

  constructor(program: Command) {
    this.#command = program;
  }

  take(word: string): void {
    if (this.#own !== null) {
      this.#own += 1;
    } else if (this.#option !== null) {
      this.#note(this.#option, word);
      this.#option = null;
    } else if (word === "--") {
      this.#own = 0;
    } else if (word.startsWith("-")) {
      const [flag = "", value] = word.split("=", 2);
      const option = this.#optionFor(flag);
      if (value !== undefined && option !== null) this.#note(option, value);
      else if (option !== null && takesValue(option)) this.#option = option;
    } else {
      const command = visible(this.#command.commands).find((each) => each.name() === word);
      if (command === undefined) this.#operands += 1;
      else this.#command = command;
    }
  }

  next(word: string): Omit<Candidates, "endpoints"> {
    if (this.#own !== null) return valueOf(this.#own === 0 ? "command" : "files", word);
    if (this.#option !== null) return valueOf(kindOf(this.#option), word, this.#option.argChoices);
    const equals = word.indexOf("=");
    if (word.startsWith("-") && equals > 0) {
      const option = this.#optionFor(word.slice(0, equals));
      const value = valueOf(option === null ? "words" : kindOf(option), word.slice(equals + 1), option?.argChoices);
      return { ...value, before: word.slice(0, equals + 1) };
    }
    if (word.startsWith("-")) return valueOf("words", word, this.#flags());
    const commands = visible(this.#command.commands).map((each) => each.name());
    // Behind a word that names none of them nothing can stand.
    if (commands.length > 0) return valueOf("words", word, this.#operands === 0 ? commands : []);
    const argument = this.#argument();
    // What comes after -- is somebody else's.
    if (argument === null || argument.variadic) return valueOf("words", word, ["--"]);
    return valueOf(kinds[argument.name()] ?? "words", word, argument.argChoices);
  }

  #note(option: Option, value: string): void {
    if (option.long === "--endpoints") this.endpoints = value;
  }

  #optionFor(flag: string): Option | null {
    return this.#command.options.find(({ long, short }) => long === flag || short === flag) ?? null;
  }

  #flags(): readonly string[] {
    const flags = this.#command.options.filter(({ hidden }) => !hidden).map(({ long, short }) => long ?? short ?? "");
    return [...flags, "--help"];
  }

  #argument(): Argument | null {
    const declared = this.#command.registeredArguments;
    return declared[this.#operands] ?? declared.find(({ variadic }) => variadic) ?? null;
  }
}

function visible(commands: readonly Command[]): readonly Command[] {
  // Commander says which are hidden by a field that its types lack.
  return commands.filter((command) => !(command as Command & { readonly _hidden?: boolean })._hidden);
}

function takesValue({ required, optional }: Option): boolean {
  return required || optional;
}

function kindOf(option: Option): ValueKind {
  return kinds[/[<[]([a-z]+)/.exec(option.flags)?.[1] ?? ""] ?? "words";
}

function valueOf(kind: ValueKind, word: string, words: readonly string[] = []): Omit<Candidates, "endpoints"> {
  return { kind, word, before: "", words: words.filter((each) => each.startsWith(word)) };
}
