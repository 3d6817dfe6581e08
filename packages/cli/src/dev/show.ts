import path from "node:path";

/** Relative to where the user is, when that is shorter. */
export function show(file: string): string {
  const relative = path.relative(process.cwd(), file);
  return relative.startsWith("..") || relative === "" ? file : relative;
}
