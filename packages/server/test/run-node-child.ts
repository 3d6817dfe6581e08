/** A node as a process of its own: argv is the configuration's file, the id, the data directory, and what goes wrong in it. */
import { loadConfig } from "../src/config.js";
import { runNode } from "../src/run-node.js";

const [file = "", nodeId = "", dataDirectory = "", fault = ""] = process.argv.slice(2);
const config = await loadConfig(file, process.env);
process.on("message", () => {
  if (fault === "throws") {
    setImmediate(() => {
      throw new Error("out of the blue");
    });
  } else if (fault === "rejects") void Promise.reject(new Error("out of the blue"));
});
process.exit(await runNode({ config, nodeId, dataDirectory, signals: true }));
