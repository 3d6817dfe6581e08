/** What the forms of acquire and request have in common. */
import { HoldfastError, InvalidArgumentError } from "./errors.js";

/** Of acquire: no lock is no result. */
export function orRefuse<T>(lock: T | null): T {
  if (lock === null) throw new HoldfastError("lock_held", "not free");
  return lock;
}

/** Of request: with options before the body, or without. */
export function splitRequest<Options extends object, Body extends (given: never) => unknown>(
  optionsOrBody: Options | Body,
  givenBody: Body | undefined,
): [options: Options | undefined, body: Body] {
  const isBody = typeof optionsOrBody === "function";
  const body = isBody ? optionsOrBody : givenBody;
  checkBody(body);
  return [isBody ? undefined : optionsOrBody, body];
}

export function checkBody<Body>(body: Body | undefined): asserts body is Body {
  if (typeof body !== "function") throw new InvalidArgumentError("body", "must be a function");
}
