import { storeContract } from "./store-contract.js";
import { postgresFenceTable, postgresRows } from "./stores/postgres.js";

storeContract(postgresRows);
storeContract(postgresFenceTable);
