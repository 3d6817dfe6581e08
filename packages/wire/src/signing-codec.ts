/** What nodes answer about sequencers and their keys (client-messages.ts), as fields after the kind of result. */
import type { PublicKey } from "@holdfast/lock";
import type { QueryResult } from "./client-messages.js";
import { count, fieldsOf, listUpTo, mapList, nullable, positive, signingKey, signingKeyId, text } from "./fields.js";
import type { Fields } from "./fields.js";
import { limits } from "./limits.js";
import { verdicts } from "./words.js";

type ResultOf<Kind extends QueryResult["kind"]> = Extract<QueryResult, { readonly kind: Kind }>;

export function sequencerFields(result: ResultOf<"sequencer">): unknown[] {
  return [count(result.index, "index"), nullable(result.sequencer, "sequencer", sequencerText)];
}

export function sequencerFrom(fields: Fields): ResultOf<"sequencer"> {
  fieldsOf(fields, 3, "sequencer");
  const sequencer = nullable(fields[2], "sequencer", sequencerText);
  return { kind: "sequencer", index: count(fields[1], "index"), sequencer };
}

export function checkFields({ index, verdict, token }: ResultOf<"check">): unknown[] {
  return [count(index, "index"), verdicts.numberFor(verdict, "verdict"), nullable(token, "token", positive)];
}

export function checkFrom(fields: Fields): ResultOf<"check"> {
  fieldsOf(fields, 4, "check");
  return {
    kind: "check",
    index: count(fields[1], "index"),
    verdict: verdicts.wordFor(fields[2], "verdict"),
    token: nullable(fields[3], "token", positive),
  };
}

export function keysFields(result: ResultOf<"keys">): unknown[] {
  const keys = listUpTo(result.keys, limits.signingKeysMax, "keys") as readonly PublicKey[];
  return [count(result.index, "index"), keys.map(keyFields)];
}

export function keysFrom(fields: Fields): ResultOf<"keys"> {
  fieldsOf(fields, 3, "keys");
  const keys = mapList(listUpTo(fields[2], limits.signingKeysMax, "keys"), "keys", keyFrom);
  return { kind: "keys", index: count(fields[1], "index"), keys };
}

function keyFields({ id, publicKey, since }: PublicKey): unknown[] {
  return [signingKeyId(id, "id"), signingKey(publicKey, "publicKey"), positive(since, "since")];
}

function keyFrom(value: unknown): PublicKey {
  const fields = fieldsOf(value, 3, "key");
  return {
    id: signingKeyId(fields[0], "id"),
    publicKey: signingKey(fields[1], "publicKey"),
    since: positive(fields[2], "since"),
  };
}

function sequencerText(value: unknown, field: string): string {
  return text(value, 1, limits.sequencerBytesMax, field);
}
