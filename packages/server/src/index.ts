export * from "./ports.js";
export { NodeHost } from "./node-host.js";
export type * from "./node-host-types.js";
export { diskSpaceOf } from "./checkup.js";
export type { Checkup, CheckupAnswer, ClockReading, DiskSpace, FollowerCheckup, HostCheckup } from "./checkup.js";
export { runJoiningNode, runNode } from "./run-node.js";
export type { RunJoiningNodeOptions, RunNodeOptions } from "./run-node.js";
export type { NodeIdentity } from "./joining.js";
export { reportDirectory } from "./directory-report.js";
export type { DatabaseReport, DirectoryProblem, DirectoryReport, MachineReport } from "./directory-report.js";
export { ConfigError, loadConfig, parseConfig } from "./config.js";
export type { Config, ConfigEnvironment, ConfigProblem, ConfiguredNode, ServerLimits, Timing } from "./config.js";
export { parseAddress } from "./address.js";
export { namePattern } from "./config-schema.js";
export { newMemberProblem } from "./new-member.js";
export type { NewMemberProblem } from "./new-member.js";
export {
  assertEmpty,
  BackupError,
  BackupExistsError,
  BackupFileError,
  DirectoryNotEmptyError,
  NotAFileError,
  writeBackupFile,
} from "@holdfast/storage";
export type { BackupHeader, WrittenBackup } from "@holdfast/storage";
export { backupBytes, salvageDirectory } from "./salvage.js";
export type { Salvaged } from "./salvage.js";
export { restoreFile, restoreMachine } from "./restore.js";
export type { Restored, RestoreOptions, RestoreParts } from "./restore.js";
export { aboveMax, RestoreIndexError } from "./restore-index.js";
export { endingFor } from "./endings.js";
export { errorCodeFor, exitCodes } from "./exit-codes.js";
export type { ExitCode, ExitName } from "./exit-codes.js";
export { createLogger, logLevels } from "./logger.js";
export type { LoggerOptions, LogLevel } from "./logger.js";
export { createSystemClock } from "./clock.js";
