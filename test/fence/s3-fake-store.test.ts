import { storeContract } from "./store-contract.js";
import { s3ServerObjects } from "./stores/s3.js";

storeContract(s3ServerObjects);
