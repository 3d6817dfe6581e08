/** What backup and restore refuse, as failures of the command line. */
import { CommandFailure } from "../command-failure.js";
import { plain } from "../output.js";

export interface BackupWords {
  /** What the bytes of a backup come from. */
  readonly source: string;
  /** For a file that is there already. */
  readonly fileAdvice: string;
}

/** Runs `body`; what goes wrong with files, directories and clocks becomes a CommandFailure. */
export async function withBackupFailures<T>(words: BackupWords, body: () => Promise<T>): Promise<T> {
  try {
    return await body();
  } catch (error) {
    throw (await failureFor(error, words)) ?? error;
  }
}

async function failureFor(error: unknown, { source, fileAdvice }: BackupWords): Promise<CommandFailure | null> {
  const server = await import("@holdfast/server");
  if (error instanceof server.BackupError)
    return new CommandFailure("storage", error.code, `${plain(source)}: ${error.message}`);
  if (error instanceof server.BackupFileError) return new CommandFailure("storage", "storage", error.message);
  if (error instanceof server.NotAFileError) {
    return new CommandFailure("error", "not_a_file", `${error.message}, and only a file is replaced: name another`);
  }
  if (error instanceof server.BackupExistsError) {
    return new CommandFailure("error", "file_exists", `${error.message}: ${fileAdvice}`);
  }
  if (error instanceof server.DirectoryNotEmptyError) {
    const advice = "a restore makes a new directory; leave the old one as it is, and name another";
    return new CommandFailure("error", "directory_not_empty", `${error.message}: ${advice}`);
  }
  if (error instanceof server.RestoreIndexError) {
    const exit = error.code === "unsafe_above" ? "usage" : "error";
    return new CommandFailure(exit, error.code, error.message);
  }
  if (isSystemError(error)) return new CommandFailure("storage", "storage", error.message);
  // The directory's node would end with that, too.
  const { exit, sentence } = server.endingFor(error);
  if (exit === "internal" || sentence === null) return null;
  return new CommandFailure(server.exitCodes[exit].code, server.errorCodeFor(exit), sentence);
}

/** Of the operating system: no such file, no space, no permission. */
function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && "syscall" in error;
}
