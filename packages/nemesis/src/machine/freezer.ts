/** The cgroup freezer: a process stops between two instructions, and neither it nor its parent is told. */
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startKeeper, waitForStarter } from "./keeper.js";
import type { Keeper } from "./keeper.js";

/** The kernel takes milliseconds; on a busy machine the process must get its turn first. */
const freezeLimitMs = 10_000;
const freezePollMs = 5;

/** Where this process's own groups lie, and how a group there is frozen. */
interface Hierarchy {
  readonly parent: string;
  readonly file: string;
  readonly frozen: string;
  readonly thawed: string;
}

/** Of this process: version 2 first, for what is frozen there can still be killed. */
function findHierarchy(): Hierarchy | string {
  const groups = readFileSync("/proc/self/cgroup", "utf8")
    .trim()
    .split("\n")
    .map((line) => line.split(":"));
  const mounts = readFileSync("/proc/self/mounts", "utf8")
    .split("\n")
    .map((line) => line.split(" "));
  const pathIn = (controller: string): string | undefined =>
    groups
      .find(([, names = ""]) => names.split(",").includes(controller))
      ?.slice(2)
      .join(":");
  const [, unified] = mounts.find(([, , type]) => type === "cgroup2") ?? [];
  const own = pathIn("");
  if (unified !== undefined && own !== undefined) {
    return { parent: join(unified, own), file: "cgroup.freeze", frozen: "1", thawed: "0" };
  }
  const old = mounts.find(([, , type, options = ""]) => type === "cgroup" && options.split(",").includes("freezer"));
  const ownOld = pathIn("freezer");
  if (old?.[1] !== undefined && ownOld !== undefined) {
    return { parent: join(old[1], ownOld), file: "freezer.state", frozen: "FROZEN", thawed: "THAWED" };
  }
  return "no cgroup with a freezer is mounted";
}

/** Thaws, gives the processes back to the group above, and removes the group. A group can be busy for a moment after its last process. */
const cleanUp = [
  'echo "$2" > "$1/$3"',
  'while read -r pid; do echo "$pid" > "$1/../cgroup.procs"; done < "$1/cgroup.procs"',
  'for turn in 1 2 3 4 5 6 7 8 9 10; do rmdir "$1" && break; sleep 0.1; done',
].join("\n");

export class Freezer {
  readonly #hierarchy: Hierarchy;
  readonly #group: string;
  readonly #keeper: Keeper;

  private constructor(hierarchy: Hierarchy, group: string, keeper: Keeper) {
    this.#hierarchy = hierarchy;
    this.#group = group;
    this.#keeper = keeper;
  }

  /** A group under this process's own; `name` is unique on the machine. */
  static async make(name: string): Promise<Freezer> {
    const hierarchy = findHierarchy();
    if (typeof hierarchy === "string") throw new Error(hierarchy);
    const group = join(hierarchy.parent, name);
    mkdirSync(group);
    try {
      if (!existsSync(join(group, hierarchy.file))) throw new Error(`no ${hierarchy.file} in ${group}`);
      const words = ["sh", group, hierarchy.thawed, hierarchy.file];
      const keeper = await startKeeper(["sh", "-c", `${waitForStarter}\n${cleanUp}`, ...words]);
      return new Freezer(hierarchy, group, keeper);
    } catch (error) {
      rmdirSync(group);
      throw error;
    }
  }

  /** Resolves when it stands still. */
  async freeze(pid: number): Promise<void> {
    writeFileSync(join(this.#group, "cgroup.procs"), `${pid}`);
    writeFileSync(join(this.#group, this.#hierarchy.file), this.#hierarchy.frozen);
    const startMs = performance.now();
    while (!this.#isFrozen) {
      if (performance.now() - startMs > freezeLimitMs)
        throw new Error(`process ${pid} isn't frozen in ${freezeLimitMs} ms`);
      await sleep(freezePollMs);
    }
  }

  thaw(): void {
    writeFileSync(join(this.#group, this.#hierarchy.file), this.#hierarchy.thawed);
  }

  get #isFrozen(): boolean {
    if (this.#hierarchy.file === "freezer.state") return this.#read("freezer.state").trim() === "FROZEN";
    return /^frozen 1$/m.test(this.#read("cgroup.events"));
  }

  async remove(): Promise<void> {
    await this.#keeper.end();
  }

  #read(file: string): string {
    return readFileSync(join(this.#group, file), "utf8");
  }
}

/** Null when this process may make groups that freeze: tried out. */
export async function missingFreezer(name: string): Promise<string | null> {
  try {
    const freezer = await Freezer.make(name);
    await freezer.remove();
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
