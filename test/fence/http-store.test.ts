import { storeContract } from "./store-contract.js";
import { httpHandlers } from "./stores/http.js";

storeContract(httpHandlers);
