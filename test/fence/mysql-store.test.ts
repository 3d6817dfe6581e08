import { storeContract } from "./store-contract.js";
import { mysqlFenceTable, mysqlRows } from "./stores/mysql.js";

storeContract(mysqlRows);
storeContract(mysqlFenceTable);
