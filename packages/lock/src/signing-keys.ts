/**
 * The keys that sequencers are signed with (docs/fencing.md). To the machine they are texts: it keeps one that is current, and the public
 * parts of those before it, so that what they signed is still verified. The secret part of a key goes when another takes its place.
 */
import type { Entry } from "./entry.js";
import { formerKeysMax } from "./limits.js";
import type { State } from "./state.js";
import type { Command, PublicKey } from "./types.js";
import { commandVersions } from "./versions.js";

/**
 * It says which key it replaces: of two that were made at the same time one counts, and neither a duplicate nor a key that was there before
 * changes anything. Below its version nothing is set, for a snapshot must not hold what that version doesn't know.
 */
export function setSigningKey(state: State, entry: Entry, command: Extract<Command, { kind: "setSigningKey" }>): void {
  const { id, publicKey, seed, replaces, principal } = command;
  const { signingKey: current, formerKeys } = state;
  const isNew = current?.id !== id && formerKeys.every((key) => key.id !== id);
  const isSet = isNew && (current?.id ?? null) === replaces && state.clusterVersion >= commandVersions.setSigningKey;
  if (isSet) {
    if (current !== null) state.formerKeys = [publicPart(current), ...formerKeys].slice(0, formerKeysMax);
    state.signingKey = { id, publicKey, since: entry.index, seed };
  }
  entry.tell({ kind: "signingKeySet", id, replaces, principal, isSet });
}

/** The current one first, then the newest first. */
export function publicKeys({ signingKey, formerKeys }: State): PublicKey[] {
  return signingKey === null ? [] : [publicPart(signingKey), ...formerKeys];
}

/** What they are not, and must be; null when all is well. */
export function keysProblem(state: State): string | null {
  const keys = publicKeys(state);
  if (keys.length === 0) return state.formerKeys.length === 0 ? null : "former ones of a current one";
  if (state.clusterVersion < commandVersions.setSigningKey) return "of the version that brings them";
  if (keys.length > 1 + formerKeysMax) return `at most ${formerKeysMax} former ones`;
  if (new Set(keys.map(({ id }) => id)).size < keys.length) return "each there once";
  const isOrdered = keys.every(({ since }, at) => since < (keys[at - 1]?.since ?? state.lastIndex + 1));
  return isOrdered ? null : "in the order of their entries";
}

function publicPart({ id, publicKey, since }: PublicKey): PublicKey {
  return { id, publicKey, since };
}
