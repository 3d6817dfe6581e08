/** The other end of a sequencer in an HTTP header: for node:http, Express, Fastify and Hono, and a fetch that sends it. */
export { fencedFetch } from "./http/fenced-fetch.js";
export type { SequencerSource } from "./http/fenced-fetch.js";
export { httpFence } from "./http/http-fence.js";
export type { HttpFence, HttpFenceOptions } from "./http/http-fence.js";
export { httpGuard } from "./http/http-guard.js";
export type { HttpGuard, HttpGuardOptions } from "./http/http-guard.js";
export { memoryRegister } from "./http/memory-register.js";
export { problemOf } from "./http/problem.js";
export type { HttpProblem } from "./http/problem.js";
export type { FenceKeeper } from "./http/fence-keeper.js";
export type {
  FastifyReplyLike,
  FastifyRequestLike,
  HonoContextLike,
  HttpFenced,
  NextFunction,
  ResourceOf,
} from "./http/shapes.js";
