/** Whether a majority of the nodes is up and hears one another: only then is anything promised about time. */
import type { Party } from "../network/network.js";

export function hasQuorum(
  nodes: readonly Party[],
  isUp: (node: Party) => boolean,
  areWhole: (one: Party, other: Party) => boolean,
): boolean {
  const up = nodes.filter((node) => isUp(node));
  const needed = Math.floor(nodes.length / 2) + 1;
  return subsetsOf(up, needed).some((members) =>
    members.every((one, at) => members.slice(at + 1).every((other) => areWhole(one, other))),
  );
}

function subsetsOf(parties: readonly Party[], size: number): readonly (readonly Party[])[] {
  if (size === 0) return [[]];
  return parties.flatMap((first, at) => subsetsOf(parties.slice(at + 1), size - 1).map((rest) => [first, ...rest]));
}
