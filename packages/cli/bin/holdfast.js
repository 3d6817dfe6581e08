#!/usr/bin/env node
// Committed as it is, so that npm links the command before anything is built.
import { existsSync } from "node:fs";

const main = new URL("../dist/src/main.js", import.meta.url);
if (existsSync(main)) {
  await import(main.href);
} else {
  console.error("holdfast: not built yet; run npm run build");
  process.exitCode = 1;
}
