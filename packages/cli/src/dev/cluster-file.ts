/** The configuration of a cluster on this machine: the same ports as cluster-configs/three-node.json and five-node.json. */

export interface ClusterFile {
  readonly cluster: string;
  readonly nodes: readonly { readonly id: string; readonly peer: string; readonly client: string }[];
}

export type ClusterSize = 1 | 3 | 5;
export const clusterSizes: readonly ClusterSize[] = [1, 3, 5];

const clusterNames: Readonly<Record<ClusterSize, string>> = { 1: "local-one", 3: "local-three", 5: "local-five" };
const firstClientPort = 7101;
const firstPeerPort = 7201;

export function localCluster(size: ClusterSize): ClusterFile {
  const nodes = Array.from({ length: size }, (_, index) => ({
    id: `n${index + 1}`,
    peer: `127.0.0.1:${firstPeerPort + index}`,
    client: `127.0.0.1:${firstClientPort + index}`,
  }));
  return { cluster: clusterNames[size], nodes };
}

/** Of three-node.json: where commands look for a cluster unless told otherwise. */
export const defaultEndpoints: string = localCluster(3)
  .nodes.map((node) => node.client)
  .join(",");
