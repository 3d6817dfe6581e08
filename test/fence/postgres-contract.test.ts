import { debianPostgres, skipWithoutDebianPostgres } from "../harness/postgres.js";
import { guardContract } from "./contract.js";

guardContract("the guards on a PostgreSQL server", debianPostgres, skipWithoutDebianPostgres());
