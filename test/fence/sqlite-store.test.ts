import { storeContract } from "./store-contract.js";
import { sqliteKinds } from "./stores/sqlite.js";

for (const kind of sqliteKinds) storeContract(kind);
