/** What a page has to load of the client. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { skipWithoutDriver } from "../fence/drivers.js";
import { bundleForBrowser } from "./bundle.js";

const skip = skipWithoutDriver("esbuild");
/** Of the client with wire, without msgpackr: minified, and as a server sends it. Raise them knowingly; docs/client.md tells both. */
const minifiedBytesMax = 113_000;
const gzippedBytesMax = 36_000;

test("the client bundles for browsers without ws and without a module of Node, in bounds", { skip }, async () => {
  const bundle = await bundleForBrowser('export * from "@holdfast/client";', ["msgpackr"]);
  assert.deepEqual(bundle.warnings, []);
  const foreign = bundle.imports.filter((path) => path.startsWith("node:") || path === "ws");
  assert.deepEqual(foreign, []);
  assert.ok(bundle.files.includes("packages/client/dist/src/browser.js"), bundle.files.join());
  for (const file of ["index", "connect", "node-ports", "node-platform", "current-lock"]) {
    assert.ok(!bundle.files.includes(`packages/client/dist/src/${file}.js`), file);
  }
  const gzipped = gzipSync(bundle.bytes).byteLength;
  assert.ok(bundle.bytes.byteLength <= minifiedBytesMax, `${bundle.bytes.byteLength} bytes minified`);
  assert.ok(gzipped <= gzippedBytesMax, `${gzipped} bytes gzipped`);
});

test("with msgpackr too it names no module of Node", { skip }, async () => {
  const bundle = await bundleForBrowser('export { connect } from "@holdfast/client";');
  assert.deepEqual(bundle.warnings, []);
  assert.deepEqual(
    bundle.imports.filter((path) => path.startsWith("node:")),
    [],
  );
  assert.doesNotMatch(bundle.text, /\bfrom"node:|require\(/);
});
