/** Shows an old token to a store's guard on something scratch, and says what the store did with it. */
import type { Fault, Finding } from "../finding.js";
import { ok, problem } from "../finding.js";

/** One guarded text in a store, made for this examination. */
export interface GuardProbe {
  /** Which guard, in words. */
  readonly form: string;
  /** Replaces the text, guarded. */
  write(token: number, text: string): Promise<void>;
  /** How its writers meet; default "at once". A driver that is synchronous runs them one after the other. */
  readonly meeting?: "at once" | "one after the other";
  /** Past the guard. The token as the store has it, in decimal. */
  stored(): Promise<StoredProbe>;
}

export interface StoredProbe {
  readonly text: string | null;
  readonly token: string | null;
}

/** A store that is examined. `close` removes what was made. */
export interface ProbedStore {
  /** Product and version. */
  readonly name: string;
  readonly probes: readonly GuardProbe[];
  /** What else of the store a guard rests on: its settings. */
  readonly settings: readonly Finding[];
  close(): Promise<void>;
}

const page = "docs/fencing.md";
const tokenMax = Number.MAX_SAFE_INTEGER;
/** Enough that some of them meet; each is one small write. */
const writersAtOnce = 16;

export async function examineGuard(store: ProbedStore): Promise<readonly Finding[]> {
  const findings: Finding[] = [ok("store", store.name)];
  for (const probe of store.probes) {
    try {
      findings.push(await oldToken(probe), await mixedWriters(probe), await greatTokens(probe));
    } catch (error) {
      if ((error as { code?: unknown }).code !== "incompatible") throw error;
      findings.push(problem("old token", faultOf(`${probe.form}: ${(error as Error).message}`)));
    }
  }
  return [...findings, ...store.settings];
}

/** Equal is accepted again, higher is remembered, lower is refused and changes nothing. */
async function oldToken(probe: GuardProbe): Promise<Finding> {
  for (const [token, text] of [
    [9, "first"],
    [9, "again"],
    [10, "newer"],
  ] as const) {
    await probe.write(token, text);
  }
  const refusal = await refusalOf(probe, 9, "late");
  const { text, token } = await probe.stored();
  const isUnchanged = text === "newer" && token === "10";
  if (refusal !== null && isUnchanged) {
    return ok("old token", `${probe.form}: token 9 was refused after 10 (${refusal}), and nothing changed`);
  }
  const what = refusal === null ? "token 9 was accepted after 10" : "token 9 was refused, and yet something changed";
  return problem("old token", faultOf(`${probe.form}: ${what}; stored: ${JSON.stringify({ text, token })}`));
}

/** A store that rounds them takes two holders for one. */
async function greatTokens(probe: GuardProbe): Promise<Finding> {
  await probe.write(tokenMax, "greatest");
  const refusal = await refusalOf(probe, tokenMax - 1, "late");
  const { text, token } = await probe.stored();
  if (refusal !== null && text === "greatest" && token === String(tokenMax)) {
    return ok("great tokens", `${probe.form}: ${tokenMax - 1} was refused after ${tokenMax}`);
  }
  return problem("great tokens", faultOf(`${probe.form}: after ${tokenMax} it holds ${token} and "${text}"`));
}

/** The newest of them is never refused, and what stands in the end is its. */
async function mixedWriters(probe: GuardProbe): Promise<Finding> {
  const tokens = Array.from({ length: writersAtOnce }, (_, at) => 20 + ((at * 7) % writersAtOnce));
  const newest = Math.max(...tokens);
  const accepted: number[] = [];
  await Promise.all(
    tokens.map(async (token) => {
      if ((await refusalOf(probe, token, `by ${token}`)) === null) accepted.push(token);
    }),
  );
  const { meeting = "at once" } = probe;
  const { text, token } = await probe.stored();
  if (accepted.includes(newest) && token === String(newest) && text === `by ${newest}`) {
    return ok("at once", `${probe.form}: of ${writersAtOnce} writers ${meeting} the newest had the last word`);
  }
  const seen = `of writers ${meeting} ${newest} was the newest token, and it holds ${token} and "${text}"`;
  return problem("at once", faultOf(`${probe.form}: ${seen}`));
}

/** The guard's own refusal in words; null when the write was accepted. Anything else that goes wrong is the caller's. */
async function refusalOf(probe: GuardProbe, token: number, text: string): Promise<string | null> {
  try {
    await probe.write(token, text);
    return null;
  } catch (error) {
    if ((error as { code?: unknown }).code === "stale_token") return "StaleTokenError";
    throw error;
  }
}

function faultOf(seen: string): Fault {
  return {
    node: null,
    seen,
    why: "A holder whose lock is over could write over its successor's work.",
    mend: `keep writers away from what this store guards, and look for what stands between it and the guard (a proxy, a trigger, a rule): ${page}`,
  };
}
