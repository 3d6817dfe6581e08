/** Removes what the compiler made. */
import { readdirSync, rmSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const top = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
for (const name of readdirSync(path.join(top, "packages"))) {
  rmSync(path.join(top, "packages", name, "dist"), { recursive: true, force: true });
}
rmSync(path.join(top, "test/dist"), { recursive: true, force: true });
