export { SandboxError } from '../sandbox-error.js'
export {
  CommandHandle,
  type CommandResult,
  type CommandStartOptions,
  Commands,
  type OutputCallbacks,
  type ProcessInfo,
} from './commands.js'
export {
  AuthenticationError,
  CommandExitError,
  InvalidArgumentError,
  NotEnoughSpaceError,
  NotFoundError,
  RateLimitError,
  TemplateError,
  TimeoutError,
} from './errors.js'
export {
  type EntryInfo,
  Filesystem,
  type FilesystemEvent,
  FilesystemEventType,
  FileType,
  type WatchHandle,
  type WriteEntry,
} from './filesystem.js'
export { Pty, type PtyHandle, type PtyOptions } from './pty.js'
export {
  Sandbox,
  Sandbox as default,
  type SandboxConnectOptions,
  type SandboxCreateOptions,
} from './sandbox.js'
export {
  type SandboxInfo,
  type SandboxList,
  type SandboxListOptions,
  SandboxPaginator,
  type SandboxState,
} from './sandbox-list.js'
