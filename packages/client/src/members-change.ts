/** The argument of changeMembers, checked at the door. What the cluster itself knows better, it refuses: change_refused. */
import { checkClientMessage } from "@holdfast/wire";
import { InvalidArgumentError } from "./errors.js";
import type { MembersChangeOptions } from "./holdfast.js";
import { checkOptionNames } from "./options.js";
import type { MembersChange } from "./queries.js";

export function checkMembersChange(change: MembersChangeOptions): MembersChange {
  checkOptionNames("changeMembers", change);
  const { add = [], promote = [], remove = [], force = false } = change;
  for (const [name, list] of Object.entries({ add, promote, remove })) {
    if (!Array.isArray(list)) throw new InvalidArgumentError(name, "must be a list");
  }
  for (const member of add) {
    if (typeof member !== "object" || member === null)
      throw new InvalidArgumentError("add", "must be a list of members");
  }
  if (typeof force !== "boolean") throw new InvalidArgumentError("force", "must be true or false");
  const checked = { add, promote, remove, isForced: force };
  const refusal = checkClientMessage({ kind: "changeMembers", id: 0, ...checked });
  if (refusal?.code === "invalid_argument") throw new InvalidArgumentError(refusal.argument, refusal.problem);
  return checked;
}
