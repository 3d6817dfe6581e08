/** Drivers are the user's: `holdfast` depends on none, and takes the one that is installed in the project where it is called. */
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { CommandFailure } from "../../command-failure.js";

/**
 * The module of the first of `names` that is installed in `folder` or above it, as Node.js looks for it.
 * @throws CommandFailure `driver_missing`.
 */
export async function loadDriver(names: readonly [string, ...string[]], folder: string): Promise<LoadedDriver> {
  const project = createRequire(path.join(folder, "package.json"));
  for (const name of names) {
    const file = resolved(project, name);
    if (file === null) continue;
    const url = path.isAbsolute(file) ? pathToFileURL(file).href : file;
    const module = (await import(url)) as { readonly default?: unknown };
    // A CommonJS module is its own default.
    return { name, module: module.default ?? module };
  }
  const wanted = names.length === 1 ? `the package ${names[0]}` : `one of the packages ${names.join(", ")}`;
  const problem = `--guard needs ${wanted}, and finds none from ${folder}: call it in your project, or run npm install ${names[0]} there`;
  throw new CommandFailure("error", "driver_missing", problem);
}

export interface LoadedDriver {
  readonly name: string;
  readonly module: unknown;
}

function resolved(project: NodeJS.Require, name: string): string | null {
  try {
    return project.resolve(name);
  } catch {
    return null;
  }
}
