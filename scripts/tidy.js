/** Checks what compiler, linter and formatter don't: see scripts/tidy/. Prints problems with file and line; alarms don't fail. */
import path from "node:path";
import { fileURLToPath } from "node:url";
import { checkDeadCode } from "./tidy/dead-code.js";
import { checkDependencies } from "./tidy/dependencies.js";
import { checkDocuments } from "./tidy/documents.js";
import { alarmLongFiles, checkFiles } from "./tidy/files.js";
import { checkLessonsDocument } from "./tidy/lessons-document.js";
import { checkPurity } from "./tidy/purity.js";
import { checkTestFunctions } from "./tidy/test-functions.js";
import { checkTestingDocument } from "./tidy/testing-document.js";
import { readTree } from "./tidy/tree.js";

const tree = readTree(path.dirname(path.dirname(fileURLToPath(import.meta.url))));
const checks = [
  checkPurity,
  checkDependencies,
  checkDeadCode,
  checkFiles,
  checkTestFunctions,
  checkDocuments,
  checkTestingDocument,
  checkLessonsDocument,
];
const problems = checks.flatMap((check) => check(tree));

for (const { file, line, text } of alarmLongFiles(tree)) console.log(`alarm: ${file}:${line}: ${text}`);
for (const { file, line, text } of problems) console.log(`${file}:${line}: ${text}`);
console.log(
  `tidy: ${problems.length === 0 ? "no problems" : `${problems.length} problems`} in ${tree.paths.length} files`,
);
process.exitCode = problems.length === 0 ? 0 : 1;
