import { type Storage, sqliteStorage } from '@corral/apiserver'
import type { DataDirectory } from './data-directory.js'
import { journalProgram } from './runtime-files.js'

/** The API server's storage in a data directory, its journal in a thread of its own where the build has the program. */
export function apiStorage(directory: DataDirectory): Storage {
  const threadProgram = journalProgram()
  return sqliteStorage({ directory: directory.api, ...(threadProgram ? { threadProgram } : {}) })
}
