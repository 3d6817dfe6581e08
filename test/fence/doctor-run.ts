/** `holdfast doctor --guard` as a user calls it: in a folder whose project has the driver. */
import { fileURLToPath } from "node:url";
import { CliProcess } from "../cli/cli-process.js";

export interface Examination {
  readonly code: number | string;
  /** The checks that found a problem, in their order. */
  readonly problems: readonly string[];
  readonly text: string;
}

export async function examineByCli(url: string): Promise<Examination> {
  const folder = fileURLToPath(new URL("../../drivers", import.meta.url));
  const { code, out, err } = await new CliProcess(["doctor", "--guard", url, "--json"], {}, folder).ended;
  const { findings } = JSON.parse(out === "" ? '{"findings":[]}' : out) as {
    readonly findings: readonly { readonly severity: string; readonly check: string }[];
  };
  const problems = findings.filter(({ severity }) => severity === "problem").map(({ check }) => check);
  return { code, problems, text: `${out}${err}` };
}
