/** One row of the error table: what a code means on the wire and what a caller may do about it. */
export interface ErrorCodeEntry {
  readonly httpStatus: number
  /** Repeating the same call may succeed. */
  readonly retryable: boolean
  readonly summary: string
  readonly hint: string
}

const row = (httpStatus: number, retryable: boolean, summary: string, hint: string): ErrorCodeEntry => ({
  httpStatus,
  retryable,
  summary,
  hint,
})

/**
 * Every error code of the daemon, the task API and the SDK. Kubernetes' own reasons come first, spelled as there. Codes
 * are stable: a released code keeps its meaning and its status.
 */
export const errorCodes = {
  BadRequest: row(400, false, 'The request is malformed.', 'Compare the request with the API description.'),
  Unauthorized: row(
    401,
    false,
    'No valid credentials came with the request.',
    'Send the token that the platform printed.',
  ),
  Forbidden: row(403, false, 'The caller may not do this.', 'Ask for the permission, or use another account.'),
  NotFound: row(404, false, 'The named thing does not exist.', 'Check its name and namespace.'),
  MethodNotAllowed: row(405, false, 'The route exists, but not with this method.', 'See the Allow header.'),
  Timeout: row(504, true, 'The operation did not finish in time.', 'Try again, or allow more time.'),
  AlreadyExists: row(
    409,
    false,
    'Something with this name exists already.',
    'Use another name, or get the existing one.',
  ),
  Conflict: row(409, true, 'The thing changed since it was read.', 'Read it again and repeat the change.'),
  Gone: row(410, false, 'The thing existed and is gone.', 'Start over from the current state.'),
  Expired: row(410, true, 'The requested position is no longer kept.', 'List anew and go on from there.'),
  RequestEntityTooLarge: row(413, false, 'The body is larger than allowed.', 'Send less, or send it as a file.'),
  UnsupportedMediaType: row(
    415,
    false,
    'The content type is not understood.',
    'Use the content type the route documents.',
  ),
  Invalid: row(422, false, 'The request is well-formed but a value is not allowed.', 'The message names the field.'),
  TooManyRequests: row(429, true, 'Too many requests at once.', 'Wait as long as Retry-After says.'),
  InternalError: row(
    500,
    true,
    'Something failed that should not.',
    'Try again; if it stays, report it with the logs.',
  ),
  NotImplemented: row(501, false, 'This is not available here.', 'The message says what is missing.'),
  ServiceUnavailable: row(503, true, 'The service is not ready.', 'Wait until it reports ready.'),
  ServerTimeout: row(504, true, 'The server gave up waiting.', 'Try again.'),

  TaskAlreadyAccepted: row(409, false, 'This runner has accepted a task before.', 'Use a new sandbox for a new task.'),
  ProcessesExist: row(
    409,
    false,
    'The daemon already runs processes.',
    'Send a runner task only to an unused sandbox.',
  ),
  ProcessExited: row(409, false, 'The process has ended.', 'Read its record; start a new one under another id.'),
  StdinClosed: row(
    409,
    false,
    'The standard input of the process is closed.',
    'Start it with stdin "open" to write to it.',
  ),
  NotATerminal: row(409, false, 'The process has no terminal.', 'Start it with tty to resize it.'),
  OffsetOutOfRange: row(
    416,
    false,
    'The offset lies beyond the output.',
    'Read from an offset the process has reached.',
  ),
  CommandNotFound: row(
    422,
    false,
    'The command is not installed in the sandbox.',
    'Check the spelling, PATH and the image.',
  ),
  CommandNotExecutable: row(422, false, 'The file exists but cannot be executed.', 'Check its mode.'),
  WorkingDirectoryMissing: row(422, false, 'The working directory does not exist.', 'Create it first.'),
  TerminalUnavailable: row(
    501,
    false,
    'No terminal support is installed in the sandbox.',
    'Run the command without tty.',
  ),
  IsADirectory: row(409, false, 'The path is a directory.', 'Name a file, or ask for the listing or an archive.'),
  NotADirectory: row(409, false, 'A part of the path is not a directory.', 'Check the path.'),
  DirectoryNotEmpty: row(409, false, 'The directory is not empty.', 'Delete it with recursive=true.'),
  PermissionDenied: row(403, false, 'The sandbox user may not touch this path.', 'Use a path the sandbox user owns.'),
  DiskFull: row(
    507,
    false,
    'A disk is full: that of the sandbox, or that of the data directory.',
    'Delete files in the sandbox, or free space in the data directory (`corral doctor` shows what uses it).',
  ),
  ArchiveFailed: row(
    422,
    false,
    'The archive could not be read or written.',
    'The message carries the last words of tar.',
  ),
  OutputLimitExceeded: row(
    413,
    false,
    'The command wrote more than the caller wanted to hold.',
    'Raise the limit or stream the output.',
  ),

  CommandFailed: row(
    422,
    false,
    'The command ended with another exit code than 0.',
    'Read its output; the details carry exit code and the end of stderr.',
  ),
  ProcessLost: row(
    410,
    false,
    'The process is gone and its end was not seen: the daemon or the sandbox under it started anew.',
    'Look at what it left behind before running it again; run long work with background: true.',
  ),
  Unsupported: row(
    501,
    false,
    'The runtime inside this sandbox cannot do this.',
    'Use a template whose image runs the Corral daemon.',
  ),
  BrokerUnreachable: row(
    503,
    true,
    'The sandbox cannot reach the broker of the platform.',
    'Check that the platform runs and that its connection to the sandbox stands.',
  ),
  ProviderUnreachable: row(
    503,
    true,
    'The cluster of a provider of sandboxes does not answer.',
    'Check it with `corral provider check NAME`.',
  ),
  ConnectionLost: row(
    503,
    true,
    'The connection to the sandbox broke.',
    'Try again; if it stays, the sandbox is gone.',
  ),
  SandboxNotReady: row(503, true, 'The sandbox did not become ready in time.', 'Look at its conditions and events.'),
  SandboxFailed: row(
    409,
    false,
    'The sandbox cannot become ready.',
    'The message names the condition; fix it and create a new one.',
  ),
  SandboxDeleted: row(410, false, 'The sandbox was deleted.', 'Create a new one.'),
  ControllerNotInstalled: row(
    503,
    false,
    'The cluster does not serve the Agent Sandbox kinds.',
    'Install the controller, or start the platform.',
  ),
  KubeConfigInvalid: row(400, false, 'The kubeconfig cannot be used.', 'The message names file and context.'),
  ProtocolViolation: row(
    502,
    false,
    'The other side answered something that is not in the contract.',
    'Check that both sides have the same version.',
  ),
  CertificateInvalid: row(
    502,
    false,
    'The certificate of the server is not to be trusted.',
    'Check the certificate authority that is configured for the server, and that its address is one the certificate names.',
  ),
  Aborted: row(499, false, 'The caller withdrew the call.', 'Nothing to do.'),

  TaskNotFound: row(404, false, 'There is no task with this id.', 'List the tasks to see their ids.'),
  FileNotFound: row(404, false, 'The task has no such file or artifact.', 'List what it has.'),
  TaskFinished: row(409, false, 'The task has already ended.', 'Retry it to run it again.'),
  TaskNotFinished: row(409, true, 'The task has not ended yet.', 'Wait for its result, or cancel it.'),
  RetryNotPossible: row(
    409,
    false,
    'The task kept nothing that a retry could begin with at this stage.',
    'Retry from an earlier stage: `agent`, or `start`.',
  ),
  PlanMissing: row(409, false, 'The task has no plan that waits for a decision.', 'Look at its status first.'),
  PlanDecided: row(409, false, 'This revision of the plan was already decided.', 'The message says how.'),
  PlanRevised: row(
    409,
    false,
    'The plan was revised since it was read.',
    'Read the new one with `corral task plan ID`, then decide again.',
  ),
  QuestionUnknown: row(409, false, 'The task did not ask such a question.', 'Look at `questions` of the task.'),
  QuestionAnswered: row(409, false, 'The question was already answered.', 'The message says how.'),
  QuestionWithdrawn: row(409, false, 'The agent went on without an answer.', 'Send the task a message instead.'),
  QuestionExpired: row(409, false, 'The question waited too long for an answer.', 'Send the task a message to go on.'),
  PlanExpired: row(409, false, 'The plan waited too long for a decision.', 'Send the task a message to go on.'),
  SandboxNotHeld: row(
    409,
    false,
    'The task holds no sandbox.',
    'Ask for one to be held with `corral run --hold 10m`, or `hold_sandbox_seconds`.',
  ),
  GroupNotFound: row(404, false, 'There are no attempts of this name.', 'List the tasks with `corral task list`.'),
  PickNotPossible: row(
    409,
    false,
    'The task is no attempt, or kept no commit that could be pushed.',
    'Look at the attempts with `corral task compare GROUP`.',
  ),
  AlreadyPicked: row(
    409,
    false,
    'Another attempt was picked.',
    'To give the branch to this one instead: `corral task pick ID --force`.',
  ),
  IdempotencyKeyReused: row(
    422,
    false,
    'The idempotency key was used for a different request.',
    'Use a fresh key for a new task.',
  ),
  RepositoryNotFound: row(
    422,
    false,
    'There is no git repository at the path of the request.',
    'Check the path; it must be absolute.',
  ),
  BranchNotFound: row(
    422,
    false,
    'The repository of the request has no such base branch.',
    'Name an existing branch, or leave it out.',
  ),
  RepositoryEmpty: row(
    422,
    false,
    'The repository of the request has no commit to start from.',
    'Make a first commit, or name a base branch that has one.',
  ),
  BranchCheckedOut: row(
    422,
    false,
    'The new branch of the request is checked out in the repository, where git refuses to write it from outside.',
    'Choose another name for the new branch, or check another one out.',
  ),
  ApplyNotPossible: row(
    409,
    false,
    'The change cannot be brought into this work tree.',
    'The message says why; take it in a shell with `corral task apply ID`.',
  ),
  WorkTreeDirty: row(
    409,
    false,
    'The work tree has changes that are not committed.',
    'Commit or stash them, then try again.',
  ),
  MergeConflict: row(
    409,
    false,
    'Both sides changed the same lines.',
    'Nothing was changed; merge it in a shell with `corral task apply ID --3way`.',
  ),
  LfsUnavailable: row(
    422,
    false,
    'The request asks for Git LFS, and git on the machine of the platform has no git-lfs.',
    'Install git-lfs there, or leave `lfs` out: then its files are pointers.',
  ),
  ModelKeyMissing: row(
    422,
    false,
    'The agent of the request needs a model key and none is set.',
    'Set it with `corral secret set NAME`; the message names the provider.',
  ),
  AgentNotInstalled: row(
    422,
    false,
    'The agent of the request is not installed.',
    'Install it with `corral agent install NAME`.',
  ),
  EgressUnsupported: row(
    422,
    false,
    'The cluster cannot let a task reach addresses by name.',
    'Leave egress out, or name a template of your own whose NetworkPolicy allows the addresses.',
  ),
  LocalRepositoryRefused: row(
    422,
    false,
    'The server does not take repositories by path.',
    'Give an https:// or ssh:// address.',
  ),
  CredentialsInUrl: row(
    422,
    false,
    'The address of the repository carries a password, token or user name, or a query that could hold one.',
    'Leave it out of the address; git on the machine of the platform finds it through a credential helper or an ssh key.',
  ),
  EnvironmentNotFound: row(
    404,
    false,
    'There is no environment with this name.',
    'List them with `corral env list`; the first task on a repository makes one.',
  ),
  ProjectNotFound: row(
    404,
    false,
    'There is no project with this name.',
    'List the projects with `corral project list`.',
  ),
  ProjectExists: row(
    409,
    false,
    'There is a project with this name already.',
    'Choose another name, or change it with `corral project edit NAME`.',
  ),
  ProjectChanged: row(
    409,
    false,
    'The project was changed since it was read.',
    'Read it again and make the change to what it says now.',
  ),
  IsolationTooWeak: row(
    422,
    false,
    'The platform isolates tasks less than the request asks for.',
    'Lower `minimum_tier`, or start the platform with a stronger tier (`corral doctor` shows what this machine can do).',
  ),
  RuntimeUnavailable: row(
    422,
    false,
    'No pool of sandboxes has the RuntimeClass the request asks for.',
    'Create a template with it and a pool for it, or name another one.',
  ),
  UnknownAgent: row(422, false, 'No agent has this name.', 'Use one of the names the message lists.'),
} as const satisfies Record<string, ErrorCodeEntry>

/** A code of the table. */
export type ErrorCode = keyof typeof errorCodes

/** Whether a string from the wire is one of our codes. */
export function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(errorCodes, code)
}

/** The table's row; a code from a newer or foreign server reads as a plain failure that is not worth repeating. */
export function errorCodeEntry(code: string): ErrorCodeEntry {
  return isErrorCode(code) ? errorCodes[code] : row(500, false, 'An unknown error.', 'See the message.')
}
