/** Which programs this machine has. */
import { accessSync, constants } from "node:fs";
import path from "node:path";

/**
 * Whether a program of that name is in PATH.
 * @param {string} name
 */
export function hasProgram(name) {
  return (process.env.PATH ?? "").split(path.delimiter).some((folder) => {
    try {
      accessSync(path.join(folder, name), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
