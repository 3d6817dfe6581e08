export * from "./types.js";
export { StorageError } from "./storage-error.js";
export { openDataDirectory } from "./data-directory.js";
export { readMachineBootId } from "./machine-boot-id.js";
