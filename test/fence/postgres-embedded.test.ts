import { embeddedPostgres, missingDrivers } from "../harness/postgres.js";
import { guardContract } from "./contract.js";

guardContract(
  "the guards on the embedded PostgreSQL",
  embeddedPostgres,
  process.env["CI"] === undefined && (missingDrivers() ?? false),
);
