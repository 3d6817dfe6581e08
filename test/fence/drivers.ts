/** Drivers that only tests need lie in test/drivers (`node scripts/test-drivers.js` installs them); their types are written down where used. */
import { createRequire } from "node:module";

const drivers = createRequire(new URL("../../drivers/package.json", import.meta.url));

export function driver(name: string): unknown {
  return drivers(name);
}

/** For a test's `skip`: what to do, or false. With CI set nothing may be missing: the tests then fail instead. */
export function skipWithoutDriver(name: string): string | false {
  if (process.env["CI"] !== undefined) return false;
  try {
    drivers.resolve(name);
    return false;
  } catch {
    return `the test driver ${name} is not installed: run \`node scripts/test-drivers.js\``;
  }
}
