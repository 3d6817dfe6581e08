import { storeContract } from "./store-contract.js";
import { fileKinds } from "./stores/files.js";

for (const kind of fileKinds) storeContract(kind);
