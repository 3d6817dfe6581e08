/** `holdfast doctor --guard` as a user calls it: in a folder whose project has the driver. */
import { fileURLToPath } from "node:url";
import { CliProcess } from "../cli/cli-process.js";

export interface Examination {
  readonly code: number | string;
  /** The checks that found a problem, in their order. */
  readonly problems: readonly string[];
  readonly text: string;
}

/** `project`: drivers that are compiled lie in "stores". `more`: further words of the command. */
export async function examineByCli(
  url: string,
  project: "drivers" | "stores" = "drivers",
  environment: Readonly<Record<string, string>> = {},
  more: readonly string[] = [],
): Promise<Examination> {
  const folder = fileURLToPath(new URL(`../../${project}`, import.meta.url));
  const words = ["doctor", "--guard", url, "--json", ...more];
  const { code, out, err } = await new CliProcess(words, environment, folder).ended;
  const { findings } = JSON.parse(out === "" ? '{"findings":[]}' : out) as {
    readonly findings: readonly { readonly severity: string; readonly check: string }[];
  };
  const problems = findings.filter(({ severity }) => severity === "problem").map(({ check }) => check);
  return { code, problems, text: `${out}${err}` };
}
