import { storeContract } from "./store-contract.js";
import { radosgwObjects } from "./stores/s3.js";

// Three processes to start, and to start again after each crash.
storeContract(radosgwObjects, { limitMs: 600_000 });
