/** The document that describes what the client port answers: one source, openapi.json beside the package's manifest. */
import { readFileSync } from "node:fs";

let document: object | null = null;

/** Read once, when somebody asks. */
export function openApiDocument(): object {
  document ??= JSON.parse(readFileSync(new URL("../../../openapi.json", import.meta.url), "utf8")) as object;
  return document;
}
