/**
 * Presents to a resource behind HTTP what it has to refuse: no sequencer, made-up ones and, when it may take the lock, a former holder's. A
 * former holder's is refused only where a newer one has been; so that one goes through to the handler, once, under the lock.
 */
import { createHash, generateKeyPairSync, sign } from "node:crypto";
import type { Fault, Finding } from "../finding.js";
import { ok, problem, warning } from "../finding.js";
import type { HttpAnswer } from "./http-request.js";

export interface Holding {
  readonly token: number;
  readonly sequencer: string;
  release(): Promise<void>;
}

export interface HttpExamination {
  /** Null: without the header. */
  readonly ask: (sequencer: string | null) => Promise<HttpAnswer>;
  /** The lock that the resource wants. */
  readonly lock: string | null;
  /** Takes that lock; null when none was named. */
  readonly hold: (() => Promise<Holding>) | null;
}

const page = "docs/fencing.md#http";

/** Ends as soon as something was let in that had to be refused: each further request would be done, too. */
export async function examineHttp({ ask, lock, hold }: HttpExamination): Promise<readonly Finding[]> {
  const bare = await ask(null);
  if (isAccepted(bare)) return [letIn("no sequencer", "a request without a sequencer", bare)];
  const stranger = await ask(strangersSequencer(lock ?? "holdfast_doctor"));
  if (isAccepted(stranger)) return [letIn("forged", "a sequencer that no cluster signed", stranger)];
  if (hold === null) return [bareFinding(bare, false), strangerFinding(stranger, false), untried("no lock was named")];

  const older = await hold();
  await older.release();
  const newer = await hold();
  try {
    const changed = await ask(withToken(newer.sequencer, 1));
    if (isAccepted(changed)) return [letIn("forged", "a sequencer whose token was changed", changed)];
    const first = await ask(newer.sequencer);
    const isKnown = isAccepted(first);
    const findings = [
      bareFinding(bare, isKnown),
      strangerFinding(stranger, isKnown),
      ...(isCompared(changed, isKnown) ? [unverified("a sequencer whose token was changed", changed)] : []),
    ];
    const hindered = hindrance(first, newer, isKnown);
    if (hindered !== null) return [...findings, hindered];
    return [...findings, oldFinding(await ask(older.sequencer), first, older, newer)];
  } finally {
    await newer.release();
  }
}

function isAccepted({ status }: HttpAnswer): boolean {
  return status < 400;
}

function codeOf({ problem: { code } }: HttpAnswer): string | null {
  return typeof code === "string" ? code : null;
}

function told(answer: HttpAnswer): string {
  const code = codeOf(answer);
  return code === null ? String(answer.status) : `${answer.status} ${code}`;
}

/** What a service in another language may say without our words; another status may be of something else than the header. */
const refusals: readonly number[] = [400, 401, 403];

/** `isKnown`: a good sequencer was accepted, so it is the header that makes the difference. */
function bareFinding(answer: HttpAnswer, isKnown: boolean): Finding {
  const isRefusal = codeOf(answer) === "no_sequencer" || (isKnown && refusals.includes(answer.status));
  if (!isRefusal) return unclear("no sequencer", "a request without a sequencer", answer);
  return ok("no sequencer", `a request without a sequencer was refused (${told(answer)})`);
}

function strangerFinding(answer: HttpAnswer, isKnown: boolean): Finding {
  const what = "a sequencer that no cluster signed";
  if (isCompared(answer, isKnown)) return unverified(what, answer);
  const isRefusal = codeOf(answer) === "bad_sequencer" || (isKnown && refusals.includes(answer.status));
  return isRefusal ? ok("forged", `${what} was refused (${told(answer)})`) : unclear("forged", what, answer);
}

/** Rather than refused for its signature. */
function isCompared(answer: HttpAnswer, isKnown: boolean): boolean {
  const code = codeOf(answer);
  return code === "stale_token" || code === "wrong_resource" || (isKnown && answer.status === 412);
}

/** Why the former holder's needn't be presented: the newest wasn't let through by the guard itself. */
function hindrance(answer: HttpAnswer, { token }: Holding, isKnown: boolean): Finding | null {
  const code = codeOf(answer);
  const { wanted, highest } = answer.problem;
  if (isKnown || code === null) return null;
  if (code === "wrong_resource") return untried(`the resource wants the lock ${JSON.stringify(wanted ?? null)}`);
  if (code !== "stale_token") return untried(`the holder's own sequencer was answered with ${told(answer)}`);
  return problem("old token", {
    node: null,
    seen: `token ${token} of the lock's holder was refused: the guard has seen ${String(highest)}`,
    why: "It refuses every holder until the cluster has given out a greater token.",
    mend: "docs/runbook.md#every-guard-refuses-everything",
  });
}

function oldFinding(answer: HttpAnswer, first: HttpAnswer, older: Holding, newer: Holding): Finding {
  const what = `token ${older.token} after ${newer.token}`;
  if (isAccepted(answer)) return letIn("old token", what, answer);
  const isRefusal = codeOf(answer) === "stale_token" || (answer.status === 412 && isAccepted(first));
  if (isRefusal) return ok("old token", `${what} was refused (${told(answer)})`);
  const seen = `${newer.token} was answered with ${told(first)}, and then ${older.token} with ${told(answer)} rather than 412`;
  return untried(`${seen}: is the method or the body wrong?`);
}

function letIn(check: string, what: string, answer: HttpAnswer): Finding {
  return problem(check, {
    node: null,
    seen: `${what} was let in (${told(answer)})`,
    why: "A holder whose lock is over could write over its successor's work.",
    mend: `put httpFence or httpGuard before this handler, for this method too: ${page}`,
  });
}

function unverified(what: string, answer: HttpAnswer): Finding {
  return problem("forged", {
    node: null,
    seen: `${what} was compared, not refused for its signature (${told(answer)})`,
    why: "Who presents a token made up, such as 9007199254740991, locks everybody out.",
    mend: `verify sequencers with the cluster's keys: ${page}`,
  });
}

function unclear(check: string, what: string, answer: HttpAnswer): Finding {
  const fault: Fault = {
    node: null,
    seen: `${what} was answered with ${told(answer)}, which something else than the guard may have said`,
    why: "Only a good sequencer that is accepted shows that the others are refused for what they are.",
    mend: "look at the URL and at --method, or name the lock with --lock: docs/cli.md",
  };
  return warning(check, fault);
}

function untried(reason: string): Finding {
  return warning("old token", {
    node: null,
    seen: `not shown: ${reason}`,
    why: "Only the cluster can sign a former holder's sequencer, and only a newer one that was let through makes it stale.",
    mend: "--lock NAME, for a resource that may be written once: docs/cli.md",
  });
}

/** What was signed no longer. */
function withToken(sequencer: string, token: number): string {
  const parts = sequencer.split(".");
  parts[5] = String(token);
  return parts.join(".");
}

/** As a cluster would sign it, with a key that is none's. Its token is the lowest: who believes it is locked out by nothing. */
function strangersSequencer(name: string): string {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  const bytes = publicKey.export({ format: "der", type: "spki" }).subarray(-32);
  const id = createHash("sha256").update(bytes).digest("hex").slice(0, 16);
  const signed = `holdfast1.${id}.${Buffer.from(name).toString("base64url")}.exclusive.-.1`;
  return `${signed}.${sign(null, Buffer.from(signed), privateKey).toString("base64url")}`;
}
