/**
 * Drivers that only tests need lie in test/drivers, those that have to be compiled in test/stores; `npm run test:stores` installs both. Their
 * types are written down where they are used.
 */
import { createRequire } from "node:module";

const [drivers, compiled] = ["drivers", "stores"].map((folder) =>
  createRequire(new URL(`../../${folder}/package.json`, import.meta.url)),
) as [NodeJS.Require, NodeJS.Require];
/** In test/stores. */
const compiledNames: readonly string[] = ["better-sqlite3"];

export function driver(name: string): unknown {
  return manifestOf(name)(name);
}

function manifestOf(name: string): NodeJS.Require {
  return compiledNames.includes(name) ? compiled : drivers;
}

/** With CI set nothing may be missing: tests then fail instead of being skipped, unless whoever runs them knows that something is. */
export function mayMiss(): boolean {
  return process.env["CI"] === undefined || process.env["HOLDFAST_SKIP_MISSING"] !== undefined;
}

/** For a test's `skip`: what to do, or false. */
export function skipWithoutDriver(name: string): string | false {
  if (!mayMiss()) return false;
  try {
    manifestOf(name).resolve(name);
    return false;
  } catch {
    return `the test driver ${name} is not installed: run \`npm run test:stores\``;
  }
}
