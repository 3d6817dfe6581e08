import { embeddedPostgres } from "../harness/postgres.js";
import { guardContract } from "./contract.js";
import { skipWithoutDriver } from "./drivers.js";
import { storeContract } from "./store-contract.js";
import { postgresFenceTable, postgresPlace } from "./stores/postgres.js";

const skip = skipWithoutDriver("@electric-sql/pglite");

guardContract("the guards on the embedded PostgreSQL", embeddedPostgres, skip);
storeContract(
  { ...postgresFenceTable, kind: "the embedded PostgreSQL", skip, start: () => postgresPlace(embeddedPostgres) },
  { isOneProcess: true },
);
