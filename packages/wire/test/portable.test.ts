/** The same results without msgpackr's native part, and with the build of it that a browser gets. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { isNativeAccelerationEnabled } from "msgpackr";

const isChild = process.env["HOLDFAST_PORTABLE_CHILD"] === "1";
const folder = fileURLToPath(new URL(".", import.meta.url));

function runSuite(files: readonly string[], extra: Record<string, string>, leastTests: number): void {
  const env: NodeJS.ProcessEnv = { ...process.env, ...extra, HOLDFAST_PORTABLE_CHILD: "1" };
  // Set by the runner that runs this file: with it the child would not run its tests.
  delete env["NODE_TEST_CONTEXT"];
  // One process for all: what is of interest here is what each of them loads.
  const script = files.map((file) => `import ${JSON.stringify(pathToFileURL(folder + file).href)};`).join("");
  const run = spawnSync(process.execPath, ["--test-reporter=tap", "--input-type=module", "--eval", script], {
    env,
    encoding: "utf8",
    timeout: 120_000,
    maxBuffer: 64 * 1024 * 1024,
  });
  assert.equal(run.status, 0, `${run.error?.message ?? ""}\n${run.stdout.slice(-4_000)}\n${run.stderr.slice(-2_000)}`);
  const passed = /^# pass (\d+)$/m.exec(run.stdout)?.[1];
  assert.ok(Number(passed) >= leastTests, `only ${passed} tests ran`);
}

if (isChild) {
  test("the child runs without the native part", () => {
    assert.equal(isNativeAccelerationEnabled, false);
  });
} else {
  test("all tests pass without msgpackr's native part", () => {
    const files = readdirSync(folder).filter((file) => file.endsWith(".test.js"));
    runSuite(files, { MSGPACKR_NATIVE_ACCELERATION_DISABLED: "true" }, 200);
  });

  test("the codecs' tests pass with the build for browsers", () => {
    // It differs from the one above in what it loads, not in how it decodes.
    const files = ["golden.test.js", "portable.test.js", "prescan.test.js", "round-trips.test.js"];
    runSuite(files, { NODE_OPTIONS: "--conditions=browser" }, 70);
  });

  test("the sources name no module of Node", () => {
    const sources = fileURLToPath(new URL("../src/", import.meta.url));
    const files = readdirSync(sources).filter((file) => file.endsWith(".js"));
    assert.ok(files.length > 10);
    for (const file of files) {
      const imports = [...readFileSync(sources + file, "utf8").matchAll(/from "([^"]+)"/g)].map(
        (match) => match[1] ?? "",
      );
      for (const each of imports) assert.ok(each.startsWith("./") || each === "msgpackr", `${file} imports ${each}`);
    }
  });
}
