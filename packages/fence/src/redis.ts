/** Guards for Redis 6 and later; tested on 7.0. Bring your own client. */
export { redisGuard } from "./redis/redis-guard.js";
export type { RedisGuard, RedisGuardOptions } from "./redis/redis-guard.js";
export type { IoredisClient, NodeRedisClient, RedisClient, RedisEval } from "./redis/client.js";
export type { RedisArgument, RedisWrite } from "./redis/writes.js";
