import { storeContract } from "./store-contract.js";
import { pooledKinds } from "./stores/postgres.js";

for (const kind of pooledKinds) storeContract(kind);
