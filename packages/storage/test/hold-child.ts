/** Opens the directory named on its command line, says so, and waits to be killed. */
import { open } from "./fixture.js";

await open(process.argv[2] as string);
process.stdout.write("open\n");
setInterval(() => undefined, 60_000);
