/** The configuration file of each node: all say the same, but each calls its peers by the addresses that its own network has for them. */
import type { Network, Party } from "../network/network.js";

export interface ClusterValues {
  readonly timing: Readonly<Record<string, number>>;
  readonly limits: Readonly<Record<string, number>>;
}

export function clusterFileFor(self: Party, nodes: readonly Party[], network: Network, values: ClusterValues): string {
  const file = {
    cluster: "partition",
    nodes: nodes.map((id) => ({
      id,
      peer: network.addressOf(self, id, "peer"),
      client: network.bindAddress(id, "client"),
    })),
    timing: values.timing,
    limits: values.limits,
  };
  return `${JSON.stringify(file, null, 2)}\n`;
}
