/** What the command line asks for. */
import { parseArgs } from "node:util";

export const usage = `usage: npm run partition -- [options]

  --scenario NAME    one scenario, or several with commas; see --list
  --file FILE        a scenario file of your own
  --all              every scenario
  --selection ci     what fits into five minutes
  --random           scenarios drawn from a seed, for --minutes
  --minutes N        how long --random goes on; default 10
  --seed N           of the first drawn scenario; default: drawn, and printed
  --nodes 3|5        a cluster of this size instead of the scenario's, where its roles allow it
  --mode MODE        auto (default: network namespaces where the machine allows), netns, proxy
  --fast             the short form of each scenario
  --out FOLDER       where runs leave their folders; default: a new one in the system's temporary folder
  --list             names of all scenarios, and what they show
  --table FOLDERS    what the runs in these folders (each an --out) came to, as Markdown`;

export type Mode = "auto" | "netns" | "proxy";

export type Choice =
  | { readonly kind: "named"; readonly names: readonly string[] }
  | { readonly kind: "file"; readonly file: string }
  | { readonly kind: "all" }
  | { readonly kind: "ci" }
  | { readonly kind: "random"; readonly minutes: number; readonly seed: number | null };

export interface RunCommand {
  readonly kind: "run";
  readonly choice: Choice;
  readonly mode: Mode;
  readonly isFast: boolean;
  readonly nodes: 3 | 5 | null;
  readonly out: string | null;
}

export interface TableCommand {
  readonly kind: "table";
  readonly folders: readonly string[];
}

export type CommandRead =
  | { readonly command: RunCommand | { readonly kind: "help" } | { readonly kind: "list" } | TableCommand }
  | { readonly problems: readonly string[] };

const options = {
  scenario: { type: "string" },
  file: { type: "string" },
  all: { type: "boolean" },
  selection: { type: "string" },
  random: { type: "boolean" },
  minutes: { type: "string" },
  seed: { type: "string" },
  nodes: { type: "string" },
  mode: { type: "string" },
  fast: { type: "boolean" },
  out: { type: "string" },
  list: { type: "boolean" },
  table: { type: "string" },
  help: { type: "boolean" },
} as const;

type Values = ReturnType<typeof parseArgs<{ options: typeof options }>>["values"];

export function readCommand(words: readonly string[]): CommandRead {
  let values: Values;
  try {
    values = parseArgs({ args: [...words], options }).values;
  } catch (error) {
    return { problems: [(error as Error).message] };
  }
  if (values.help === true) return { command: { kind: "help" } };
  if (values.list === true) return { command: { kind: "list" } };
  if (values.table !== undefined) return { command: { kind: "table", folders: values.table.split(",") } };
  const problems: string[] = [];
  const choice = readChoice(values, problems);
  const { mode = "auto", nodes = null } = values;
  if (mode !== "auto" && mode !== "netns" && mode !== "proxy")
    problems.push(`--mode: ${mode} is none of auto, netns, proxy`);
  if (nodes !== null && nodes !== "3" && nodes !== "5") problems.push(`--nodes: ${nodes} is neither 3 nor 5`);
  if (choice === null || problems.length > 0) return { problems };
  return {
    command: {
      kind: "run",
      choice,
      mode: mode as Mode,
      // The selection has to fit into its time.
      isFast: values.fast === true || choice.kind === "ci",
      nodes: nodes === null ? null : (Number(nodes) as 3 | 5),
      out: values.out ?? null,
    },
  };
}

function readChoice(values: Values, problems: string[]): Choice | null {
  const { scenario, file, all, selection, random } = values;
  const chosen = [scenario, file, all, selection, random].filter((each) => each !== undefined);
  if (chosen.length !== 1) problems.push("say one of --scenario, --file, --all, --selection, --random");
  if (random !== true && (values.minutes ?? values.seed) !== undefined)
    problems.push("--minutes and --seed go with --random");
  if (selection !== undefined && selection !== "ci") problems.push(`--selection: there is only ci, not ${selection}`);
  if (problems.length > 0) return null;
  if (scenario !== undefined) return { kind: "named", names: scenario.split(",") };
  if (file !== undefined) return { kind: "file", file };
  if (all === true) return { kind: "all" };
  if (selection !== undefined) return { kind: "ci" };
  const minutes = wholeNumber("--minutes", values.minutes ?? "10", 1, 24 * 60, problems);
  const seed = values.seed === undefined ? null : wholeNumber("--seed", values.seed, 0, 2 ** 31 - 1, problems);
  return { kind: "random", minutes, seed };
}

function wholeNumber(name: string, text: string, least: number, most: number, problems: string[]): number {
  const value = Number(text);
  const isGood = /^\d+$/.test(text) && value >= least && value <= most;
  if (!isGood) problems.push(`${name}: ${text} is no whole number from ${least} to ${most}`);
  return value;
}
