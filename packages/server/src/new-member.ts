/** What somebody says of a node that is to be added, checked before it stands in the log: its id never comes back. */
import type { Member } from "@holdfast/raft";
import { parseAddress } from "./address.js";
import { namePattern } from "./config-schema.js";

/** As `drawName` draws it (node-world.ts). */
const instancePattern = /^[0-9a-f]{32}$/;

export interface NewMemberProblem {
  readonly field: keyof Member;
  /** A sentence that quotes the value. */
  readonly problem: string;
}

/** An instance that is null isn't known yet. */
export type NewMember = Omit<Member, "instance"> & { readonly instance: string | null };

/** The first thing that is wrong; null when nothing is. */
export function newMemberProblem({ id, instance, peer, client }: NewMember): NewMemberProblem | null {
  if (!namePattern.test(id)) {
    const rule = '1 to 64 letters, digits, ".", "_" or "-", with a letter or digit at both ends';
    return { field: "id", problem: `${JSON.stringify(id)} is no id of a node: ${rule}` };
  }
  for (const [field, address] of [
    ["peer", peer],
    ["client", client],
  ] as const) {
    if (parseAddress(address) !== null) continue;
    return { field, problem: `${JSON.stringify(address)} is not an address: "host:port" or "[ipv6]:port"` };
  }
  if (instance === null || instancePattern.test(instance)) return null;
  const problem = `${JSON.stringify(instance)} is no instance of a data directory: 32 digits of 0-9 and a-f`;
  return { field: "instance", problem };
}
