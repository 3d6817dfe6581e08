import path from "node:path";

import { contentBytes } from "../content.js";
import type { ContentGuard } from "../content.js";
import { InvalidArgumentError } from "../errors.js";
import { Guard } from "../guard.js";
import { checkResource } from "../guarded.js";
import { checkOptionNames } from "../options.js";
import { plainName } from "../plain-name.js";
import { reportingOptionNames } from "../reporting.js";
import type { ReportingOptions } from "../reporting.js";
import { VersionRegister } from "./version-register.js";

export interface FileGuardOptions extends ReportingOptions {
  /** Each resource gets a directory of its own in here. Only this guard may write there. */
  readonly directory: string;
}

/**
 * Guards one content per resource, the lock's name naming it. Every method with a lock refuses a token below the resource's highest
 * with StaleTokenError, having changed nothing, and leaves the resource at the token; an equal token is accepted again. Whatever was
 * acknowledged is on the disk. `read` copies the content once for each new token.
 */
export type FileGuard = ContentGuard;

/** @throws InvalidArgumentError naming the option. */
export function fileGuard(options: FileGuardOptions): FileGuard {
  checkOptionNames(options, "options", ["directory", ...reportingOptionNames]);
  const { directory, ...reporting } = options;
  if (typeof directory !== "string" || directory === "" || directory.includes("\0")) {
    throw new InvalidArgumentError("options.directory", "must be the path of a directory");
  }
  const root = path.resolve(directory);
  const register = new VersionRegister((resource) => path.join(root, plainName(resource)));
  const guard = new Guard(register, { name: "files", ...reporting });
  return {
    write: async (lock, content) => guard.write(lock, contentBytes(content, "content")),
    update: async (lock, change) => {
      if (typeof change !== "function") throw new InvalidArgumentError("change", "must be a function");
      return guard.update(lock, async (current) => contentBytes(await change(current), "change"));
    },
    read: (lock) => guard.read(lock),
    remove: (lock) => guard.remove(lock),
    readNewest: async (resource) => {
      checkResource(resource);
      return (await register.read(resource))?.record.value ?? null;
    },
  };
}
