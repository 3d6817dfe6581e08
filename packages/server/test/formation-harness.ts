import { strict as assert } from "node:assert";
import type { LogBase, Restored, Term } from "@holdfast/raft";
import type { Store } from "@holdfast/storage";
import { sleep } from "./helpers.js";

/** What a directory keeps over crashes. */
export interface Disk {
  readonly instance: string;
  boot: number;
  formed: { readonly clusterId: string; readonly base: LogBase } | null;
}

/** Where a crash cuts a node's formation off. */
export type CrashPoint = "before its copy is durable" | "after its copy is durable";

export interface Directory {
  form(clusterId: string, base: LogBase): Promise<{ store: Store; restored: Restored }>;
}

export function restoredFrom(base: LogBase): Restored {
  return { hardState: { term: 0 as Term, votedFor: null }, base, entries: [] };
}

/** Calls `onCrash` instead of finishing at the given point. */
export function directoryOn(disk: Disk, crashAt: CrashPoint | null, onCrash: () => void): Directory {
  return {
    async form(clusterId, base) {
      assert.equal(disk.formed, null, "a directory is formed once");
      await sleep(1);
      if (crashAt === "before its copy is durable") {
        onCrash();
        return new Promise(() => undefined);
      }
      disk.formed = { clusterId, base };
      if (crashAt === "after its copy is durable") {
        onCrash();
        return new Promise(() => undefined);
      }
      return { store: {} as Store, restored: restoredFrom(base) };
    },
  };
}

export const ids = ["n1", "n2", "n3"] as const;
export type Id = (typeof ids)[number];

export function diskFor(id: Id, instance = `instance-${id}`): Disk {
  return { instance, boot: 0, formed: null };
}
