import { clipText } from './task-events.js'
import { eventLimits, type TaskWarning } from './task-state.js'

/** One row of the warning table: something about a task's result that its owner should know, though it did not fail. */
export interface TaskWarningEntry {
  readonly summary: string
  readonly hint: string
}

const row = (summary: string, hint: string): TaskWarningEntry => ({ summary, hint })

const getKept =
  'It is in the artifact kept.bundle of the task: `git fetch kept.bundle "refs/corral/kept/*:refs/corral/*"`.'

/** Every warning a task can carry. Codes are stable. */
export const taskWarnings = {
  SessionNotKept: row(
    'The session of the agent could not be kept: it is too large, or no longer there.',
    'A follow-up begins a new session and is told what this task was.',
  ),
  SessionNotResumed: row(
    'The session of the former task is no longer kept, so that the agent began a new one.',
    'It was told what the former task was; say again what else it needs to know.',
  ),
  WorkOnOtherBranch: row(
    'The work was not on the branch of the task but on another one; that one became the result.',
    'Nothing to do.',
  ),
  BranchKept: row('The agent made commits on another branch that are not part of the result.', getKept),
  BranchUnreadable: row(
    'A branch the agent made cannot be read.',
    'Look at the log of the agent for what damaged its repository.',
  ),
  CommitsKept: row(
    'The agent made commits or changed files that no branch leads to, and they are not part of the result.',
    getKept,
  ),
  RefNotPushed: row(
    'The agent made or moved a tag, a note or another ref; only the branch of the task is pushed.',
    `Set it yourself where you want it. ${getKept.replace('It is', 'What it names is, where that is new,')}`,
  ),
  StashKept: row('The agent left work in a stash, which is not part of the result.', getKept),
  UncommittedKept: row(
    'Files changed on another branch than the result’s conflict with it and are not part of it.',
    getKept,
  ),
  KeptRefsLost: row(
    'Branches or stashes beside the result could not be taken out of the sandbox.',
    'Look at the log of the agent for what it did on them.',
  ),
  KeptRefsLeftOut: row(
    'Branches, stashes or commits beside the result are too large together for an artifact: there is no kept.bundle.',
    'They are in the repository in the sandbox, which is kept until the task is deleted; where there is an artifact work-tree.tar, in that one.',
  ),
  HistoryRewritten: row(
    'The agent replaced commits it was to build on; its files are one commit on top of the base, with its messages.',
    getKept,
  ),
  NewerCommitsUndone: row(
    'The agent changed files of an older commit than it was given, in conflict with later ones: the result undoes those.',
    'Compare the diff with what was asked for.',
  ),
  HistoryLost: row(
    'The agent’s repository could not be read; the result is its files, without commits it may have made.',
    'Read the log of the agent for its commit messages.',
  ),
  RepositoryDamaged: row(
    'The agent damaged, deleted or replaced the repository; the result was made from a fresh copy of the base.',
    'Compare the diff with what was asked for.',
  ),
  IndexRebuilt: row(
    'The index of the agent’s repository could not be used and was made anew.',
    'Compare the diff with what was asked for.',
  ),
  CommitsNotAccepted: row(
    'Commits of the agent were not accepted; the result is its files as one commit.',
    'They are as it made them in the artifact rejected.bundle or work-tree.tar of the task.',
  ),
  AttributesIgnored: row(
    'Attributes of the repository could not be applied: files are as they were on disk.',
    'Check line endings and filtered files in the diff.',
  ),
  PathLeftOut: row(
    'A path could not be read, or git does not take its name, and it is not part of the result.',
    'It is in the artifact left-out.tar of the task; where there is none, in the sandbox, which is kept until the task is deleted.',
  ),
  NestedRepository: row(
    'A repository inside the work tree was taken in as plain files.',
    'Make it a submodule if it shall stay a repository. Commits that it alone has are below `refs/corral/kept/nested` in the artifact kept.bundle.',
  ),
  SetupFileLeftOut: row(
    'What set-up made, and was not changed since, is not part of the result.',
    'Add it to .gitignore, or let the agent commit it.',
  ),
  FileTooLarge: row(
    'A file is larger than a result may hold and is not part of it.',
    'It is in the artifact work-tree.tar; where there is none, in the sandbox, which is kept until the task is deleted.',
  ),
  NoRoomLeft: row(
    'The disk had no room for a file, and it is not part of the result.',
    'Make room or give the task more disk, and retry.',
  ),
  LargeFile: row('The result contains a large file.', 'Check that it belongs into the repository.'),
  GeneratedFile: row(
    'The result adds what tools make: dependencies, build products or caches.',
    'Add it to .gitignore unless it belongs into the repository.',
  ),
  ConflictMarkers: row('A file has conflict markers left in it.', 'Resolve the conflict before you merge.'),
  FiltersNotApplied: row(
    'The repository names clean and smudge filters that are not applied in the sandbox.',
    'Files they apply to are as git stores them.',
  ),
  HistoryPartial: row(
    'The repository is very large: the sandbox has its whole history, but contents of earlier versions of files are left out.',
    'Commands that read them (`git log -p`, `git blame`) fail there.',
  ),
  SubmodulesNotFetched: row(
    'The repository has submodules, which are empty in the sandbox.',
    'Ask for them with `submodules: true`.',
  ),
  SubmoduleChanged: row(
    'The agent changed files or made commits inside a submodule, which are not part of the result.',
    getKept,
  ),
  LfsNotFetched: row(
    'The repository has files stored with Git LFS, which are pointers in the sandbox.',
    'Ask for their contents with `lfs: true`.',
  ),
  FromCheckpoint: row(
    'The work could not be taken out at its end; the result is the last checkpoint of it, and what came after is missing.',
    'Retry: the agent goes on from there.',
  ),
  DiffLeftOut: row(
    'The change is too large to be kept as a patch.',
    'Fetch the branch and let git show it: `git diff BASE...BRANCH`.',
  ),
  LfsObjectKept: row(
    'The agent committed a pointer of Git LFS; the content it stands for is not in the repository.',
    'It is in the artifact kept.bundle of the task, as the blob `refs/corral/kept/lfs/OID`: store it with `git lfs clean`, then `git lfs push`.',
  ),
  CheckFileLeftOut: row(
    'A file made by a check is not part of the result.',
    'Add it to .gitignore, or let the agent commit it.',
  ),
  ArtifactMissing: row('A file that was to be kept is not there.', 'Check the path; it is relative to the checkout.'),
  ArtifactTooLarge: row(
    'A file that was to be kept is too large.',
    'Keep less of it: 64 MiB each and 256 MiB together are the most.',
  ),
  LfsObjectMissing: row(
    'The result names contents of Git LFS that the sandbox did not have.',
    'Where the server does not have them either, those files cannot be checked out: look at the paths in the diff.',
  ),
  EgressRefused: row('The sandbox asked for a name it may not reach.', 'Allow it where the task needs it.'),
  SnapshotNotUsed: row(
    'The environment has no snapshot that could be used, so that the task sets itself up.',
    '`corral env show` says more.',
  ),
  SetupOutsideSnapshot: row(
    'Set-up left files outside of the repository and the home directory, which later tasks do not get.',
    'Let it write below either of them.',
  ),
  ToolMissing: row(
    'A version file asks for a toolchain the sandbox does not have.',
    'Add it, or correct the file; tasks go on with what is there.',
  ),
  ToolDiffers: row(
    'A version file asks for a version the sandbox does not have; a near one is used.',
    'Add the exact one where it matters.',
  ),
  EnvironmentPartly: row(
    'A file of another tool says how the repository is set up, and not all of it could be used.',
    'Write .corral/environment.yaml with `corral env init` and complete it.',
  ),
  SetupSilent: row('Set-up is still running and has said nothing for a while.', 'Wait, or cancel the task.'),
  WarningsCut: row('There were more warnings than are kept.', 'Look at the diff.'),
} as const satisfies Record<string, TaskWarningEntry>

export type TaskWarningCode = keyof typeof taskWarnings

/** Warnings a task keeps at most; the last one says that there were more. */
export const maxTaskWarnings = 100

export function isTaskWarning(code: string): code is TaskWarningCode {
  return Object.hasOwn(taskWarnings, code)
}

/** A warning as it is recorded: the table's words, the path it is about, and what else is known of the case. */
export function taskWarning(code: TaskWarningCode, about: { path?: string; detail?: string } = {}): TaskWarning {
  const { summary, hint } = taskWarnings[code]
  const detail = about.detail ? ` (${clipText(about.detail, 500)})` : ''
  return {
    code,
    message: `${summary.replace(/\.$/, '')}${detail}. ${hint}`,
    ...(about.path ? { path: clipText(about.path, eventLimits.pathCharacters) } : {}),
  }
}

/** Both lists without repeats, cut to what a task keeps. */
export function mergeWarnings(known: readonly TaskWarning[], more: readonly TaskWarning[]): TaskWarning[] {
  const all = new Map(
    [...known, ...more].map((warning) => [`${warning.code} ${warning.path ?? warning.message}`, warning]),
  )
  const list = [...all.values()].filter(({ code }) => code !== 'WarningsCut')
  const isCut = list.length < all.size || list.length > maxTaskWarnings
  return isCut ? [...list.slice(0, maxTaskWarnings - 1), taskWarning('WarningsCut')] : list
}
