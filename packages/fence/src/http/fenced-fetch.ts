import { InvalidArgumentError, StaleTokenError } from "../errors.js";
import { isStale, problemType } from "./problem.js";
import { sequencerHeader } from "./sequencer-header.js";

/** A lock handle: what it gives is asked for anew for each request. */
export interface SequencerSource {
  sequencer(): Promise<string>;
}

/**
 * `fetch` with the lock's sequencer in the header Holdfast-Sequencer. Rejects with StaleTokenError when the server says that a newer token has
 * been there, and else as `sequencer()` and `fetch` do; any other answer comes as it is, 412 for another reason too.
 *
 * A redirect is an error unless `init.redirect` says otherwise: who sees a sequencer can present it, and fetch would hand the header on.
 */
export async function fencedFetch(
  lock: SequencerSource,
  input: string | URL | Request,
  init: RequestInit = {},
): Promise<Response> {
  if (typeof (lock as Partial<SequencerSource> | null | undefined)?.sequencer !== "function") {
    throw new InvalidArgumentError("lock", "must be a lock with sequencer()");
  }
  const headers = new Headers(init.headers ?? (input instanceof Request ? input.headers : {}));
  headers.set(sequencerHeader, await lock.sequencer());
  // A wrapper of fetch is what it is; whoever has put another one in its place (tracing, tests) gets that.
  const response = await globalThis.fetch(input, { redirect: "error", ...init, headers });
  const stale = response.status === 412 ? await staleError(response) : null;
  if (stale !== null) throw stale;
  return response;
}

/** More than any problem of ours has. What is longer isn't one, and isn't read. */
const problemBytesMax = 65_536;

async function staleError(response: Response): Promise<StaleTokenError | null> {
  const [type] = (response.headers.get("content-type") ?? "").split(";");
  if (type?.trim().toLowerCase() !== problemType) return null;
  if (Number(response.headers.get("content-length") ?? 0) > problemBytesMax) return null;
  const body: unknown = await response
    .clone()
    .json()
    .catch(() => null);
  if (!isStale(body) || !isToken(body.presented) || !isToken(body.highest)) return null;
  await response.body?.cancel();
  return new StaleTokenError(body.resource, body.presented, body.highest);
}

function isToken(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 1;
}
