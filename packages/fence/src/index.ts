/** The part of the guards that every store shares. One entry per store: `@holdfast/fence/postgres`. */
export {
  FenceError,
  IncompatibleResourceError,
  InvalidArgumentError,
  ResourceMissingError,
  StaleTokenError,
  UnknownOutcomeError,
} from "./errors.js";
export type { FenceErrorCode } from "./errors.js";
export { fenceOf } from "./fence.js";
export type { Fence, FenceSource } from "./fence.js";
