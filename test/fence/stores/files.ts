/** The guard of files behind the interface of the one suite, on the file systems that this machine has. */
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ReportingOptions } from "@holdfast/fence";
import { fileGuard } from "@holdfast/fence/files";
import type { GuardedStore, Place, StoreKind } from "../guarded-store.js";
import { unavailable } from "../guarded-store.js";

interface Note {
  readonly body: string | null;
  readonly lines: readonly string[];
}

const empty: Note = { body: null, lines: [] };

/** The newest token that a resource's directory shows, past the guard; null when there is none. */
export function storedToken(directory: string, resource: string): number | null {
  for (const folder of readdirSync(directory)) {
    const names = versionNames(join(directory, folder));
    const newest = names.at(-1);
    if (newest === undefined) continue;
    const [header] = readFileSync(join(directory, folder, newest), "utf8").split("\n", 1);
    const { resource: owner, token } = JSON.parse(header ?? "") as { resource: string; token: number };
    if (owner === resource) return token;
  }
  return null;
}

export function versionNames(folder: string): string[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith(".v"))
    .sort();
}

async function open(directory: string, reporting: ReportingOptions): Promise<GuardedStore> {
  const notes = fileGuard({ directory, ...reporting });
  const parsed = (content: Buffer | null): Note =>
    content === null ? empty : (JSON.parse(content.toString("utf8")) as Note);
  return {
    write: (fence, body) => notes.write(fence, JSON.stringify({ ...empty, body })),
    read: async (fence) => parsed(await notes.read(fence)).body,
    append: async (fence, line) => {
      await notes.update(fence, (content) => {
        const note = parsed(content);
        return JSON.stringify({ ...note, lines: [...note.lines, line] });
      });
    },
    remove: (fence) => notes.remove(fence),
    writeAll: unavailable,
    stored: async (resource) => {
      // Two looks are one moment if nothing came between.
      for (;;) {
        const token = storedToken(directory, resource);
        const note = parsed(await notes.readNewest(resource));
        if (storedToken(directory, resource) === token) return { ...note, token };
      }
    },
    close: async () => {},
  };
}

function kindOn(name: string, root: string): StoreKind {
  return {
    kind: `files on ${name}`,
    guard: "files",
    remembersRemoved: true,
    changesSeveral: false,
    crashes: false,
    skip: existsSync(root) ? false : `${root} is not there`,
    start: async (): Promise<Place> => {
      const directory = mkdtempSync(join(root, "holdfast-files-"));
      return {
        address: directory,
        stop: async () => rmSync(directory, { recursive: true, force: true }),
        crash: unavailable,
      };
    },
    open,
  };
}

export const fileKinds: readonly StoreKind[] = [kindOn("the disk", tmpdir()), kindOn("tmpfs", "/dev/shm")];
