import { storeContract } from "./store-contract.js";
import { redisKeys, redisRegister } from "./stores/redis.js";

storeContract(redisKeys);
storeContract(redisRegister);
