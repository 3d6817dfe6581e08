/** What is PostgreSQL's own, registered once for each database. The promises of every store are in store-contract.ts. */
import { describe } from "node:test";
import type { TestPostgres } from "../harness/postgres.js";
import { useDatabase } from "./database.js";
import { concurrentUpdateTests, oddTests, rowTests } from "./row-contract.js";
import { concurrentTransactionTests, fenceTableTests, transactionTests } from "./transaction-contract.js";

export function guardContract(title: string, start: () => Promise<TestPostgres>, skip: string | false): void {
  describe(title, { skip, timeout: 120_000 }, () => {
    const database = useDatabase(start);
    rowTests(database);
    oddTests(database);
    fenceTableTests(database);
    transactionTests(database);
    concurrentUpdateTests(database);
    concurrentTransactionTests(database);
  });
}
