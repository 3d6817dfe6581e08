/** Ranges of cluster versions, at the end of what releases before did not send them in. */
import type { VersionRange } from "@holdfast/lock";
import { badValue, fieldsOf, positive } from "./fields.js";

/** Of whoever doesn't say what it runs. */
export const firstVersions: VersionRange = { min: 1, max: 1 };

export function versionFields({ min, max }: VersionRange): number[] {
  checkOrder(min, max);
  return [positive(min, "versions"), positive(max, "versions")];
}

export function versionsFrom(value: unknown): VersionRange {
  const fields = fieldsOf(value, 2, "versions");
  const range = { min: positive(fields[0], "versions"), max: positive(fields[1], "versions") };
  checkOrder(range.min, range.max);
  return range;
}

function checkOrder(min: number, max: number): void {
  if (min > max) throw badValue("versions", "ends before it begins");
}
