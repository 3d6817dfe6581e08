/**
 * The consensus core with its private fields open to view. A search needs the whole state of a node to tell two states apart, and
 * `#fields` can't be seen from outside; production gets no hole for that. So the compiled core is copied, `#name` becomes
 * `private_name` in every file, and the copy is loaded. Nothing else changes.
 */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type * as RaftModule from "@holdfast/raft";

export type OpenedRaft = typeof RaftModule;

/** Prefix of what was private. */
export const openedPrefix = "private_";

/** Compiled files with a private name that the pattern would miss are refused by the loader: `#` alone is no JavaScript. */
const privateName = /#(?=[A-Za-z_])/g;

/** `plant` may change a compiled file of the copy: tests plant bugs that the search must find. */
export async function openRaft(plant: (name: string, text: string) => string = unchanged): Promise<OpenedRaft> {
  const entry = fileURLToPath(import.meta.resolve("@holdfast/raft"));
  const from = path.dirname(entry);
  const to = fs.mkdtempSync(path.join(os.tmpdir(), "holdfast-opened-raft-"));
  try {
    fs.writeFileSync(path.join(to, "package.json"), `{ "type": "module" }`);
    for (const name of fs.readdirSync(from)) {
      if (!name.endsWith(".js")) continue;
      const text = fs.readFileSync(path.join(from, name), "utf8");
      fs.writeFileSync(path.join(to, name), plant(name, text).replaceAll(privateName, openedPrefix));
    }
    return (await import(pathToFileURL(path.join(to, path.basename(entry))).href)) as OpenedRaft;
  } finally {
    fs.rmSync(to, { recursive: true, force: true });
  }
}

function unchanged(_name: string, text: string): string {
  return text;
}
