/** Short ways to write commands in tests. */
import type { Command, RequestNumber, SessionId } from "../src/index.js";

type CommandOf<Kind extends Command["kind"]> = Extract<Command, { kind: Kind }>;

export function open(key: string): CommandOf<"openSession"> {
  return { kind: "openSession", key, ttlMs: 10_000, info: "" };
}

export function acquire(
  session: SessionId,
  request: RequestNumber,
  names: readonly string[],
  others: Partial<CommandOf<"acquire">> = {},
): CommandOf<"acquire"> {
  const terms = { mode: "exclusive", slots: 0, wait: true, lockDelayMs: 0, maxHoldMs: 0, info: "" } as const;
  return { kind: "acquire", session, request, settled: 1, seen: [], names, ...terms, ...others };
}

export function release(
  session: SessionId,
  request: RequestNumber,
  of: RequestNumber,
  others: Partial<CommandOf<"release">> = {},
): CommandOf<"release"> {
  return { kind: "release", session, request, settled: 1, seen: [], of, afterMs: 0, ...others };
}

export function cancel(session: SessionId, request: RequestNumber, of: RequestNumber): CommandOf<"cancel"> {
  return { kind: "cancel", session, request, settled: 1, seen: [], of };
}
