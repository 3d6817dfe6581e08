/** Asks a node that waits to be added who it is: a member is an id together with the instance that its data directory drew. */
import { GetError, getJson } from "@holdfast/server/http-get";
import { CommandFailure } from "../command-failure.js";
import { plain } from "../output.js";

export interface NodeIdentity {
  readonly id: string;
  readonly instance: string;
  readonly peer: string;
  readonly client: string;
  /** Of its cluster, or of the one that it waits to join; null when it knows none. */
  readonly clusterId: string | null;
}

/** As the operator names it. */
export interface NamedNode {
  readonly id: string;
  readonly peer: string;
  readonly client: string;
}

const answerMs = 3_000;

/** Null when nobody answers there, or the node is still starting. */
export async function identityAt(client: string): Promise<NodeIdentity | null> {
  try {
    const found = await getJson<Partial<NodeIdentity>>(client, "/v1/identity", { timeoutMs: answerMs });
    const { id, instance, peer, client: own, clusterId } = found;
    const areTexts = [id, instance, peer, own].every((each) => typeof each === "string");
    if (!areTexts) return null;
    return { id, instance, peer, client: own, clusterId: clusterId ?? null } as NodeIdentity;
  } catch (error) {
    if (error instanceof GetError) return null;
    throw error;
  }
}

/** Throws when the node at `client` isn't the one that was named, or belongs elsewhere. */
export function checkIdentity(found: NodeIdentity, named: NamedNode, clusterId: string): void {
  const where = `the node at ${plain(named.client)}`;
  if (found.id !== named.id) throw differs(`${where} is ${plain(found.id)}, not ${plain(named.id)}`);
  for (const address of ["peer", "client"] as const) {
    if (found[address] === named[address]) continue;
    throw differs(
      `${where} was started with --${address} ${plain(found[address])}, and is to be added with ${plain(named[address])}`,
    );
  }
  if (found.clusterId === clusterId) return;
  if (found.clusterId === null)
    throw differs(`${where} waits for no cluster: start it with holdfast node --join ENDPOINTS, on an empty directory`);
  throw differs(`${where} belongs to cluster ${plain(found.clusterId)}, not ${plain(clusterId)}`);
}

function differs(problem: string): CommandFailure {
  return new CommandFailure("error", "node_differs", problem);
}
