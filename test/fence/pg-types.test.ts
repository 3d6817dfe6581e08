import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { missingDrivers } from "../harness/postgres.js";

test("the types of the drivers and of OpenTelemetry fit what takes them", {
  skip: process.env["CI"] === undefined && (missingDrivers() ?? false),
}, () => {
  const compiler = join(dirname(createRequire(import.meta.url).resolve("typescript/package.json")), "bin", "tsc");
  const project = fileURLToPath(new URL("../../drivers/tsconfig.json", import.meta.url));
  const { status, stdout } = spawnSync(process.execPath, [compiler, "-p", project], { encoding: "utf8" });
  assert.equal(status, 0, stdout);
});
