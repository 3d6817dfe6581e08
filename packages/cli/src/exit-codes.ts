/**
 * The exit codes that commands other than `node` end with. The whole table is the server's; it isn't imported here, since a command
 * such as `ls` would load a database for six numbers. A test holds them together.
 */
export const exitCodes = {
  ok: 0,
  error: 1,
  usage: 2,
  warnings: 3,
  problems: 4,
  portInUse: 69,
  internal: 70,
  directoryInUse: 73,
  storage: 74,
  notObtained: 75,
  lost: 76,
} as const;

export type ExitName = keyof typeof exitCodes;
