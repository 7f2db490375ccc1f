export { type FakeIsolation, fakeIsolation } from './fake-isolation.js'
export {
  type ScriptedModel,
  startScriptedModel,
} from './models/scripted-model.js'
export type { ModelBlock, ModelRequest } from './models/wire-api.js'
export { bareRemote, type FileTree, type GitFixture, gitRepository } from './platform/git-fixtures.js'
export { type GitServer, startGitServer } from './platform/git-server.js'
export {
  corralProgram,
  cradlePid,
  findKubectl,
  type PlatformProcess,
  type PlatformProcessOptions,
  type ReadyRecord,
  runCorral,
  startPlatformProcess,
} from './platform/platform-process.js'
export { type PortForward, portForward } from './platform/port-forward.js'
export {
  type HostSnapshot,
  hostSnapshot,
  leftoversOf,
  processesOf,
  sandboxDaemons,
  sandboxProcesses,
} from './platform/process-scan.js'
export { type ProgramOptions, type ProgramResult, runProgram } from './platform/run-program.js'
export { type SecretScan, scanForSecret } from './platform/secret-scan.js'
export { lockedSshHost, type SshStandIn, sshStandIn } from './platform/ssh-stand-in.js'
export {
  type ApiAnswer,
  type EventOptions,
  type RequestOptions,
  type TaskApi,
  taskApi,
} from './platform/task-api.js'
export { type TemporaryDirectory, temporaryDirectory } from './platform/temporary-directory.js'
export { type ReceivedSpan, startTraceCollector, type TraceCollector } from './platform/trace-collector.js'
export { hangMs, type WaitOptions, waitUntil } from './platform/wait-until.js'
export { isFullSize } from './size.js'
export { tinyRoot } from './tiny-root.js'
