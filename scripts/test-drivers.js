/**
 * Installs what only tests need, unless it is there already: test/drivers (database drivers, an embedded PostgreSQL), with --stores also
 * test/stores, which takes a compiler.
 */
import path from "node:path";
import { fileURLToPath } from "node:url";
import { installManifest } from "./own-manifest.js";

const top = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const folders = process.argv.includes("--stores") ? ["test/drivers", "test/stores"] : ["test/drivers"];
const isInstalled = folders.every((folder) =>
  installManifest(top, folder, (text) => console.log(`${folder}: ${text}`)),
);
process.exitCode = isInstalled ? 0 : 1;
