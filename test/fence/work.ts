/** What writers do, in the process of the tests or in one of their own. */
import assert from "node:assert/strict";
import { StaleTokenError } from "@holdfast/fence";
import type { GuardedStore } from "./guarded-store.js";

/** What the writers of these tests leave under each token. */
export const bodyUnder = (token: number): string => `written under ${token}`;
export const lineUnder = (token: number): string => `line of ${token}`;

/** The resources that one transaction writes. */
export const severalOf = (resource: string): string[] => ["a", "b", "c"].map((part) => `${resource}/${part}`);

/**
 * What a successor writes. More than any store keeps of old versions, so that an old holder wakes up in a world that has forgotten where
 * it stopped.
 */
export const newLines: readonly string[] = Array.from({ length: 20 }, (_, at) => `new ${at + 1}`);

export const tokensOfMixed = 20;

export interface MixedResult {
  readonly accepted: readonly string[];
  readonly refused: number;
}

/** Writers `from` to `to`, all at once, five or so to a token. */
export async function mixedWriters(
  store: GuardedStore,
  resource: string,
  from: number,
  to: number,
): Promise<MixedResult> {
  const accepted: string[] = [];
  let refused = 0;
  const writers = Array.from({ length: to - from }, (_, at) => from + at);
  await Promise.all(
    writers.map(async (writer) => {
      const token = 1 + ((writer * 37) % tokensOfMixed);
      const line = `${token} by ${writer}`;
      try {
        await store.append({ resource, token }, line);
        accepted.push(line);
      } catch (error) {
        assert.ok(
          error instanceof StaleTokenError && error.presented === token && error.highest > token,
          String(error),
        );
        refused += 1;
      }
    }),
  );
  return { accepted, refused };
}
