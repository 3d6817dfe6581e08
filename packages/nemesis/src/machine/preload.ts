/** Libraries that are loaded into a process before its own: built by the system's C compiler when they are needed. */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { runCommand, whyNot } from "./command.js";
import type { Launch } from "./machine.js";

export type Preload = "disk-faults" | "clocks";

/** The names are those of the C library of glibc and of older ones, where they lie apart. */
const libraries = ["-ldl", "-lrt", "-lpthread"];

/** Null when libraries can be built and loaded here. */
export async function missingPreload(folder: string): Promise<string | null> {
  if (process.platform !== "linux") return `libraries are preloaded on Linux only, this is ${process.platform}`;
  const problem = await whyNot(buildCommand("disk-faults", join(folder, "trial.so")));
  return problem === null ? null : `no C compiler that builds a library: ${problem}`;
}

/** The path of the built library in the folder. */
export async function buildPreload(name: Preload, folder: string): Promise<string> {
  const library = join(folder, `${name}.so`);
  await runCommand(buildCommand(name, library));
  return library;
}

function buildCommand(name: Preload, library: string): string[] {
  const source = fileURLToPath(new URL(`../../../native/${name}.c`, import.meta.url));
  return ["cc", "-O2", "-shared", "-fPIC", "-o", library, source, ...libraries];
}

/** Libraries that are named first come before those that the launch has already. */
export function withPreloads(launch: Launch, paths: readonly string[], env: Readonly<Record<string, string>>): Launch {
  const before = launch.env["LD_PRELOAD"];
  const all = before === undefined || before === "" ? paths : [...paths, before];
  return { ...launch, env: { ...launch.env, ...env, LD_PRELOAD: all.join(":") } };
}
