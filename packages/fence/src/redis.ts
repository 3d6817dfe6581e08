/** Guards for Redis 6 and later, and for what speaks its protocol and has EVAL (Valkey, KeyDB). Bring your own client. */
export { redisGuard } from "./redis/redis-guard.js";
export type { RedisGuard, RedisGuardOptions } from "./redis/redis-guard.js";
export type { IoredisClient, NodeRedisClient, RedisClient, RedisEval } from "./redis/client.js";
export type { RedisArgument, RedisWrite } from "./redis/writes.js";
