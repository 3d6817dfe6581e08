/** A second build of this code with a patch applied: the next release, which runs beside this one. */
import { spawnSync } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const top = fileURLToPath(new URL("../../..", import.meta.url));

interface Copies {
  fresh(): string;
  remove(): void;
}

export interface NextRelease {
  /** The `holdfast` program of that build. */
  readonly bin: string;
  /** One of its packages. */
  load<Module>(name: string): Promise<Module>;
  remove(): void;
}

/** Throws when the patch doesn't apply to the code as it is, or the outcome doesn't compile. `patch`: its path from the top. */
export async function buildNextRelease(patch: string): Promise<NextRelease> {
  const { Copies } = (await import(new URL("../../../scripts/mutants/copies.js", import.meta.url).href)) as {
    readonly Copies: new (top: string) => Copies;
  };
  const copies = new Copies(top);
  const copy = copies.fresh();
  // The copy is no repository: git must not take one above it for its own, or it would pass over the files.
  run(copy, "git", ["apply", join(top, patch)], { GIT_CEILING_DIRECTORIES: dirname(copy) });
  run(copy, process.execPath, [join(copy, "node_modules/typescript/bin/tsc"), "-b", "packages/cli"]);
  return {
    bin: join(copy, "packages/cli/bin/holdfast.js"),
    load: (name) => import(new URL(`packages/${name}/dist/src/index.js`, `file://${copy}/`).href),
    remove: () => copies.remove(),
  };
}

function run(cwd: string, program: string, words: readonly string[], more: NodeJS.ProcessEnv = {}): void {
  const { status, stdout, stderr, error } = spawnSync(program, words, {
    cwd,
    encoding: "utf8",
    env: { ...process.env, ...more },
  });
  if (status !== 0) throw new Error(`${program} ${words.join(" ")}: ${error?.message ?? `${stdout}${stderr}`}`);
}
