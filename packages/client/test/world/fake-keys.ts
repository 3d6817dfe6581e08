/** How the fake nodes sign sequencers and answer questions about them: as the server does, with keys of their own. */
import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, sign, verify } from "node:crypto";
import { parseSequencer, sealSequencer, sequencerToSign } from "@holdfast/wire";
import type { Query, QueryResult, SequencerVerdict } from "@holdfast/wire";
import type { FakeCluster } from "./fake-cluster.js";
import type { FakeNode } from "./fake-node.js";
import type { ServerSocket } from "./virtual-network.js";

type KeyQuery = Extract<Query, { kind: "sequencer" | "check" | "keys" }>;

const isNone = { code: "incompatible", problem: "the cluster is at version 1" } as const;

export function isKeyQuery(query: Query): query is KeyQuery {
  return query.kind === "sequencer" || query.kind === "check" || query.kind === "keys";
}

/** Raises the cluster's version if need be, and sets a new key. Gives its id. */
export function setKey(cluster: FakeCluster, principal = ""): string {
  if (cluster.machine.clusterVersion < 2) cluster.apply({ kind: "setClusterVersion", version: 2 });
  const { x = "", d: seed = "" } = generateKeyPairSync("ed25519").privateKey.export({ format: "jwk" });
  const id = createHash("sha256").update(Buffer.from(x, "base64url")).digest("hex").slice(0, 16);
  const replaces = cluster.machine.signingKey?.id ?? null;
  cluster.apply({ kind: "setSigningKey", id, publicKey: x, seed, replaces, principal });
  return id;
}

export function answerKeyQuery(
  cluster: FakeCluster,
  node: FakeNode,
  socket: ServerSocket,
  id: number,
  query: KeyQuery,
): void {
  const { machine, lastIndex: index } = cluster;
  const say = (result: QueryResult): void => cluster.say(node, socket, { kind: "answer", id, result });
  if (query.kind === "keys") return say({ kind: "keys", index, keys: machine.publicKeys() });
  if (machine.signingKey === null) return cluster.refuse(node, socket, { id }, isNone);
  if (query.kind === "check") return say({ kind: "check", index, ...check(cluster, query.sequencer) });
  const holding = machine.holdingView(query.session, query.key, query.of, query.name);
  if (holding === null) return say({ kind: "sequencer", index, sequencer: null });
  const { id: keyId, publicKey: x, seed: d } = machine.signingKey;
  const key = createPrivateKey({ key: { kty: "OKP", crv: "Ed25519", x, d }, format: "jwk" });
  const signed = sequencerToSign(keyId, holding);
  say({ kind: "sequencer", index, sequencer: sealSequencer(signed, sign(null, Buffer.from(signed), key)) });
}

function check({ machine }: FakeCluster, text: string): { verdict: SequencerVerdict; token: number | null } {
  const { keyId, signed, signature, name, slot, token } = parseSequencer(text);
  const x = machine.publicKeys().find((key) => key.id === keyId)?.publicKey;
  if (x === undefined) return { verdict: "unknown_key", token: null };
  const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
  if (!verify(null, Buffer.from(signed), key, signature)) return { verdict: "forged", token: null };
  const held = machine.tokenAt(name, slot);
  return { verdict: held === token ? "current" : "over", token: held };
}
