/**
 * Numbers of requests that come over HTTP. The node itself cancels a wait whose time is over or whose client has gone, and gives a grant
 * back that crossed that: commands of the session too, each with a number of its own. So the client's request n is the lock machine's 3n,
 * its cancel 3n + 1, the release of a crossed grant 3n + 2. They are the same at every leader, and what the client has settled settles them
 * (docs/decisions/005-requests-over-http.md).
 */
import { limits } from "@holdfast/wire";

const stride = 3;

/** The highest number of a client's request. */
export const requestMax: number = Math.floor(Number.MAX_SAFE_INTEGER / stride) - 1;

/** Numbers that one request may call seen. */
export const seenMax: number = Math.floor(limits.seenMax / stride);

/** That of the session's close: no client's request comes near it, so a close that is repeated has the same number anywhere. */
export const closeNumber: number = Number.MAX_SAFE_INTEGER;

export function requestNumber(request: number): number {
  return request * stride;
}

export function cancelNumber(request: number): number {
  return request * stride + 1;
}

export function crossedReleaseNumber(request: number): number {
  return request * stride + 2;
}

/** Null: it is no number of a client's request. */
export function clientNumber(number: number): number | null {
  return number % stride === 0 ? number / stride : null;
}

/** The client's request that a number belongs to. */
export function requestOf(number: number): number {
  return Math.floor(number / stride);
}

/** What a client has seen the end of is over with all its numbers; together they leave no gap. */
export function seenNumbers(seen: readonly number[]): number[] {
  return seen.flatMap((request) => [requestNumber(request), cancelNumber(request), crossedReleaseNumber(request)]);
}
