/**
 * Installs what only tests need, unless it is there already: test/drivers (database drivers, an embedded PostgreSQL, what drives a browser), with --stores also
 * test/stores, which takes a compiler, with --packaging also test/consumer (older compilers, package checkers).
 */
import path from "node:path";
import { fileURLToPath } from "node:url";
import { installManifest } from "./own-manifest.js";

const top = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const folders = ["test/drivers"];
if (process.argv.includes("--stores")) folders.push("test/stores");
if (process.argv.includes("--packaging")) folders.push("test/consumer");
const isInstalled = folders.every((folder) =>
  installManifest(top, folder, (text) => console.log(`${folder}: ${text}`)),
);
process.exitCode = isInstalled ? 0 : 1;
