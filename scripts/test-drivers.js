/** Installs what only tests need (test/drivers: database drivers, an embedded PostgreSQL), unless it is there already. */
import path from "node:path";
import { fileURLToPath } from "node:url";
import { installManifest } from "./own-manifest.js";

const top = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const isInstalled = installManifest(top, "test/drivers", (text) => console.log(`test drivers: ${text}`));
process.exitCode = isInstalled ? 0 : 1;
