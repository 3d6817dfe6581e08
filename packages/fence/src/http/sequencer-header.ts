/** From a header to a fence that the cluster vouches for, of the lock that the request needs. */
import { InvalidArgumentError } from "../errors.js";
import type { SequencerKeys } from "../sequencer-keys.js";
import type { VerifiedSequencer } from "../sequencer.js";
import { RequestRefusal, problem } from "./problem.js";
import type { HttpFenced } from "./shapes.js";

/** As node:http has it. In full: Holdfast-Sequencer. */
export const sequencerHeader = "holdfast-sequencer";

/** How soon a client may try again when the cluster's keys can't be had, or too many wait. */
export const retryAfter = { "retry-after": "1" };

/** @throws InvalidArgumentError naming `options.keys`. */
export function checkKeys(keys: unknown): asserts keys is SequencerKeys {
  if (typeof (keys as Partial<SequencerKeys> | null | undefined)?.verify === "function") return;
  throw new InvalidArgumentError("options.keys", "must be what sequencerKeys() gives");
}

/** @throws InvalidArgumentError */
export function checkFunction(value: unknown, argument: string): void {
  if (typeof value !== "function") throw new InvalidArgumentError(argument, "must be a function");
}

export interface Presented {
  /** node:http joins several ones by commas, and so they are no sequencer. */
  readonly sequencer: string | readonly string[] | undefined;
  readonly holder: string | undefined;
}

/** Rejects with RequestRefusal, or with what `resourceOf` throws. */
export async function presentedFence(
  keys: SequencerKeys,
  { sequencer, holder }: Presented,
  resourceOf: (fence: HttpFenced) => string,
): Promise<HttpFenced> {
  if (sequencer === undefined || sequencer === "") throw refusalOfMissing();
  const verified = await keys.verify(String(sequencer)).catch((error: unknown) => {
    throw refusalOf(error);
  });
  const fence: HttpFenced = { ...verified, ...(holder === undefined ? {} : { holder }) };
  const wanted: unknown = resourceOf(fence);
  if (typeof wanted !== "string" || wanted === "") {
    throw new InvalidArgumentError("resourceOf", "must give the name of the lock that the request needs");
  }
  if (wanted !== verified.resource) throw refusalOfOther(verified, wanted);
  return fence;
}

function refusalOfMissing(): RequestRefusal {
  const detail = "the header Holdfast-Sequencer is needed: what lock.sequencer() gives";
  const facts = { code: "no_sequencer", detail, retryable: false } as const;
  return new RequestRefusal(problem(401, facts, { "www-authenticate": "Holdfast-Sequencer" }));
}

function refusalOfOther({ resource }: VerifiedSequencer, wanted: string): RequestRefusal {
  const detail = "the sequencer is of another lock than this request needs";
  return new RequestRefusal(problem(403, { code: "wrong_resource", detail, retryable: false, resource, wanted }));
}

/** By code: another copy of this package may have made the keys. */
function refusalOf(error: unknown): unknown {
  const { code, reason, message, retryable } = error as {
    readonly code?: unknown;
    readonly reason?: unknown;
    readonly message?: unknown;
    readonly retryable?: unknown;
  };
  if (code === "bad_sequencer") {
    const facts = { code, reason, detail: String(message), retryable: retryable === true } as const;
    return new RequestRefusal(problem(reason === "malformed" ? 400 : 403, facts), error);
  }
  if (code === "unreachable") {
    const detail = "the cluster's keys can't be had, so no sequencer can be verified";
    return new RequestRefusal(problem(503, { code, detail, retryable: true }, retryAfter), error);
  }
  return error;
}
