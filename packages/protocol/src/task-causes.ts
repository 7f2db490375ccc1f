import type { TaskStage } from '@corral/resources/task-words'

/** How a task ended, seen from its phase. */
export type TaskEndPhase = 'FAILED' | 'TIMED_OUT' | 'CANCELLED'

/** One row of the cause table: where a task can end this way, what it means, and what its owner can do. */
export interface TaskCauseEntry {
  readonly phase: TaskEndPhase
  readonly stage: TaskStage | 'any'
  /** Running the task again unchanged may succeed. */
  readonly retryable: boolean
  readonly summary: string
  readonly hint: string
}

const failed = (stage: TaskStage | 'any', retryable: boolean, summary: string, hint: string): TaskCauseEntry => ({
  phase: 'FAILED',
  stage,
  retryable,
  summary,
  hint,
})

/** Every way a task can end other than well. A task that succeeded has no cause. Codes are stable. */
export const taskCauses = {
  InvalidTask: failed(
    'any',
    false,
    'The task asks for something that is not possible.',
    'The message names the field; create a corrected task.',
  ),
  UnknownAgent: failed('any', false, 'No agent has this name.', 'Choose one of the agents the message lists.'),
  ModelKeyMissing: failed(
    'any',
    false,
    'The agent needs a model key and none is set.',
    'Set it with `corral secret set NAME` (the message names the provider), then retry.',
  ),

  PlanExpired: failed(
    'agent',
    false,
    'The plan was neither approved nor rejected in time.',
    'Go on with `corral task send ID "..."`; the agent remembers its plan.',
  ),

  QuestionExpired: failed(
    'agent',
    false,
    'A question of the agent was not answered in time.',
    'Go on with `corral task send ID "..."`; the agent remembers what it asked.',
  ),

  ClaimFailed: failed(
    'claim',
    true,
    'The claim for a sandbox was refused.',
    'Read the conditions of the claim; check pool and template.',
  ),
  PoolNotFound: failed(
    'claim',
    false,
    'The sandbox pool does not exist.',
    'Name one of `corral pool list`, or make it with `corral pool create NAME --template TEMPLATE`.',
  ),
  TemplateNotFound: failed(
    'claim',
    false,
    'The sandbox template does not exist.',
    'Name one of `corral template list`, or make it with `corral template apply FILE`.',
  ),
  RuntimeUnavailable: failed(
    'sandbox',
    false,
    'The sandbox asks for a RuntimeClass that does not exist or that no node can give.',
    'Compare `kubectl get runtimeclasses` and the runtimeHandlers of the node with the template; use another template.',
  ),
  IsolationTooWeak: failed(
    'sandbox',
    false,
    'The sandbox is isolated less than the task asks for.',
    'Lower minimumTier or name another pool, or start the platform with a stronger tier (see `corral doctor`).',
  ),
  EgressUnsupported: failed(
    'any',
    false,
    'The cluster cannot let a task reach addresses by name.',
    'Leave egress out, or name a template of your own whose NetworkPolicy allows the addresses.',
  ),
  ImagePullFailed: failed(
    'sandbox',
    true,
    'The node could not get the image of the sandbox.',
    'Check the name of the image in the template, its pull secret, and that nodes reach the registry.',
  ),
  Unschedulable: failed(
    'sandbox',
    true,
    'No node had room for the sandbox or fits what it asks for.',
    'Read `kubectl get events`; add a node, or ask for less in the template.',
  ),
  SandboxCannotStart: failed(
    'sandbox',
    true,
    'The containers of the sandbox do not start.',
    'The message says why; correct the template, then retry.',
  ),
  SandboxNotReady: failed(
    'sandbox',
    true,
    'The sandbox did not become ready in time.',
    'Read the events of its pod, then retry.',
  ),
  SandboxLost: failed(
    'any',
    true,
    'The sandbox disappeared while the task used it.',
    'Retry; if it happens again, read the events of the pod.',
  ),
  BrokerUnreachable: failed(
    'agent',
    true,
    'The sandbox cannot reach the broker of the platform, so its agent would have no model.',
    'Check that the platform runs and that its connection to the sandbox stands, then retry.',
  ),
  ProviderUnreachable: failed(
    'claim',
    true,
    'The cluster that was to run the task does not answer.',
    'Check it with `corral provider check NAME`, then retry.',
  ),
  DaemonUnreachable: failed(
    'any',
    true,
    'The sandbox runs but its daemon does not answer.',
    'Check that the template uses an image with the daemon.',
  ),

  RepositoryNotFound: failed(
    'repository',
    false,
    'The repository does not exist or is not visible.',
    'Check the URL or path.',
  ),
  RepositoryAccessDenied: failed(
    'repository',
    false,
    'The repository refused the credentials.',
    'Check the git credentials of the user who runs the platform.',
  ),
  RepositoryUntrusted: failed(
    'repository',
    false,
    'The repository belongs to another user.',
    'Change its owner, or trust it with `git config --global --add safe.directory PATH`.',
  ),
  RepositoryDamaged: failed(
    'repository',
    false,
    'Objects of the repository are missing or damaged.',
    'Run `git fsck` in it, or give a fresh clone.',
  ),
  SubmoduleUnavailable: failed(
    'repository',
    false,
    'A submodule that was asked for could not be fetched.',
    'Check its address and your access, or leave `submodules` out.',
  ),
  LfsUnavailable: failed(
    'repository',
    false,
    'Contents of Git LFS files that were asked for could not be fetched.',
    'Install git-lfs and check your access to its server, or leave `lfs` out.',
  ),
  BranchNotFound: failed(
    'repository',
    false,
    'The base branch does not exist.',
    'Name an existing branch with base_branch.',
  ),
  BranchExists: failed(
    'repository',
    false,
    'The new branch exists already and is not ours.',
    'Choose another name with new_branch.',
  ),
  BranchConflict: failed(
    'repository',
    false,
    'The new branch cannot exist beside another one, as `a/b` beside `a`.',
    'Choose another name with new_branch.',
  ),
  BranchCheckedOut: failed(
    'repository',
    false,
    'The new branch is checked out in the repository, which git does not change under a work tree.',
    'Choose another name with new_branch, or check out another branch.',
  ),
  PushDenied: failed(
    'any',
    false,
    'The repository can be read but not pushed to with the credentials of the platform.',
    'Ask for the right to push, or use a fork.',
  ),
  BranchProtected: failed(
    'push',
    false,
    'The remote protects the branch.',
    'Push to another branch: `corral task retry ID --branch NAME`.',
  ),
  RepositoryEmpty: failed('repository', false, 'The repository has no commit to start from.', 'Make a first commit.'),
  CloneFailed: failed(
    'repository',
    true,
    'The repository could not be brought into the sandbox.',
    'The last output says why.',
  ),
  FileInjectionFailed: failed(
    'repository',
    false,
    'A file of the request could not be written.',
    'Check its path: it must stay inside the repository.',
  ),
  EnvironmentInvalid: failed(
    'repository',
    false,
    'The environment file of the repository cannot be used.',
    'Check it with `corral env validate`.',
  ),
  ToolMissing: failed(
    'repository',
    false,
    'The environment file names a toolchain that the sandbox does not have.',
    'Add it with `corral env tools install TOOL@VERSION` or `corral env tools --add DIR`, then retry.',
  ),
  SecretMissing: failed(
    'setup',
    false,
    'The environment file asks for a secret that was granted and is not set.',
    'Set it with `corral secret set NAME`, then retry.',
  ),
  ServiceFailed: failed(
    'setup',
    false,
    'A service or background command of the environment ended, or was not ready in time.',
    'The message has its last output; try its command with `corral task shell ID`.',
  ),
  EnvironmentNotGranted: failed(
    'repository',
    false,
    'The environment file of the repository asks for network or secrets that were not granted.',
    'See what is missing with `corral env show REPO`, then grant it with `corral env grant REPO HOST:PORT`.',
  ),
  SnapshotRefused: failed(
    'setup',
    false,
    'What set-up left cannot be kept as a snapshot, so that every task sets itself up.',
    'The message names the file: let set-up leave none that belongs to another user or holds a secret.',
  ),
  SetupFailed: failed(
    'setup',
    false,
    'The set-up command of the repository failed.',
    'Read its output; run it by hand, or grant the egress it needs.',
  ),
  SetupTimeout: failed(
    'setup',
    false,
    'The set-up command did not end in time.',
    'Make it quicker or allow the task more time.',
  ),

  AgentNotInstalled: failed(
    'agent',
    false,
    'The agent is not installed.',
    'Install it with `corral agent install NAME`.',
  ),
  AgentStartFailed: failed('agent', false, 'The agent could not be started.', 'The message carries the reason.'),
  AgentFailed: failed('agent', true, 'The agent ended with an error.', 'Read what it wrote last.'),
  AgentKilled: failed(
    'agent',
    true,
    'The agent was ended by a signal.',
    'Look for memory or process limits of the sandbox.',
  ),
  OutOfMemory: failed('agent', true, 'The agent ran out of memory.', 'Use a template with a higher memory limit.'),
  ModelRefused: failed('agent', false, 'The model provider refused the request.', 'Check key, model name and quota.'),
  ModelUnavailable: failed(
    'agent',
    true,
    'The model provider could not be reached.',
    'Check the network of the platform and retry.',
  ),
  BudgetExceeded: failed('agent', false, 'The task used up its model budget.', 'Raise the limit, or split the task.'),

  ResultFailed: failed(
    'result',
    true,
    'The result could not be taken out of the sandbox.',
    'The last output says why.',
  ),
  ChecksFailed: failed(
    'checks',
    true,
    'Checks of the work failed, also after the agent was sent back.',
    'Read the artifact `check-ROUND-NAME.log` of the task (`corral task artifacts ID`), then retry or take the branch over.',
  ),
  ResultRejected: failed(
    'result',
    false,
    'The result breaks a rule and was not accepted.',
    'The message names the rule.',
  ),
  ResultTooLarge: failed(
    'result',
    false,
    'The result is larger than allowed.',
    'Keep build products out of the commit.',
  ),
  PushRefused: failed(
    'push',
    false,
    'The remote refused the branch.',
    'Read the message of the remote: protected branch, hook or rights.',
  ),
  SigningFailed: failed(
    'push',
    true,
    'The commits could not be signed.',
    'Check gpg.format and user.signingkey in the git configuration of the platform’s user; the work is kept, so retry.',
  ),
  PushFailed: failed(
    'push',
    true,
    'The branch could not be pushed.',
    'Check the network; the commit is kept, so retry.',
  ),

  DiskFull: failed(
    'any',
    false,
    'A disk is full.',
    'Free space in the data directory (`corral doctor` shows what takes it), then retry.',
  ),
  DiskLimit: failed(
    'any',
    false,
    'The sandbox took more of the disk than it may.',
    'Keep large files out of it, or use a template with a higher `ephemeral-storage` limit.',
  ),
  InternalError: failed(
    'any',
    true,
    'Something failed that should not.',
    'Retry; if it stays, report it with the log of the task.',
  ),

  Timeout: {
    phase: 'TIMED_OUT',
    stage: 'any',
    retryable: true,
    summary: 'The task did not end within its time.',
    hint: 'Allow more time with --timeout (timeout_seconds), or ask for less.',
  },
  Cancelled: {
    phase: 'CANCELLED',
    stage: 'any',
    retryable: true,
    summary: 'The task was cancelled.',
    hint: 'Retry it to run it again.',
  },
} as const satisfies Record<string, TaskCauseEntry>

/** A cause of the table. */
export type TaskCauseCode = keyof typeof taskCauses

/** Whether a string from a record or the wire is one of our causes. */
export function isTaskCause(code: string): code is TaskCauseCode {
  return Object.hasOwn(taskCauses, code)
}

/** A cause as it is recorded and shown: the code, what happened in this case, and the next move. */
export interface TaskCause {
  code: TaskCauseCode
  message: string
  hint?: string | undefined
}

/** A cause with the table's hint; `message` says what happened in this case and defaults to the table's summary. */
export function taskCause(code: TaskCauseCode, message?: string): TaskCause {
  const entry = taskCauses[code]
  return { code, message: message ?? entry.summary, hint: entry.hint }
}
