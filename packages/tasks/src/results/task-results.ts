import {
  type AppliedChange,
  type ApplyHow,
  type Artifact,
  type ChangedFile,
  type ChangedFiles,
  type FileRef,
  isInjectablePath,
} from '@corral/protocol'
import type { AgentTask, Stored } from '@corral/resources'
import type { RecordPart, TaskRecords } from '../records/task-records.js'
import { TaskError } from '../task-error.js'
import { artifactNames } from './artifact-names.js'
import type { BringHome } from './bring-home.js'
import { type ByteRange, byteRange } from './byte-range.js'
import { patchFiles } from './patch-files.js'
import type { TreeFile, TreeReader } from './tree-reader.js'

/** What a task left behind, in pieces. */
export interface TaskResults {
  /** The files that changed; those of the patch that is kept. */
  files(id: string): Promise<ChangedFiles>
  /** The accepted change as a patch, whole or of one file; empty where there is none. */
  diff(id: string, options?: ByteRange & { path?: string | undefined }): Promise<AsyncIterable<Uint8Array>>
  /** One file of the result or of its base. `FileNotFound` where it has none. */
  file(
    id: string,
    options: ByteRange & { path: string; ref: FileRef; signal: AbortSignal },
  ): Promise<{ sizeBytes: number; content: AsyncIterable<Uint8Array> }>
  /** Brings the change into the work tree of its repository on this machine. 409 where it cannot be done whole. */
  apply(id: string, how: ApplyHow): Promise<AppliedChange>
  artifacts(id: string): Promise<Artifact[]>
  artifact(id: string, name: string): Promise<{ sizeBytes: number; content: AsyncIterable<Uint8Array> }>
}

export interface TaskResultsOptions {
  getTask(id: string): Promise<Stored<AgentTask>>
  records: Pick<TaskRecords, 'of'>
  /** Absent: files are known by the patch alone. */
  trees?: TreeReader | undefined
  /** Absent: the server has no work trees. */
  bringHome?: BringHome | undefined
}

/** Files that are listed; a longer list is too large for one answer. */
const maxFiles = 10_000

export function createTaskResults({ getTask, records, trees, bringHome }: TaskResultsOptions): TaskResults {
  const recordOf = async (id: string) => records.of((await getTask(id)).metadata.uid)

  return {
    async files(id) {
      const task = await getTask(id)
      const record = records.of(task.metadata.uid)
      const files: ChangedFile[] = []
      for await (const { offset: _offset, ...file } of patchFiles(record.read('diff'))) {
        if (files.length === maxFiles) return listed(files, true)
        files.push(file)
      }
      return listed(files, files.length === 0 && (task.status?.diffStat?.filesChanged ?? 0) > 0)
    },
    async diff(id, { path, ...range } = {}) {
      const record = await recordOf(id)
      if (path === undefined) return byteRange(record.read('diff'), range)
      for await (const file of patchFiles(record.read('diff'))) {
        if (file.path !== path) continue
        const part = byteRange(record.read('diff'), { offset: file.offset, limit: file.patch_bytes })
        return byteRange(part, range)
      }
      throw missing(id, `changed no file "${shown(path)}"`, `List the files with \`corral task diff ${id} --name-only\`.`)
    },
    async file(id, { path, ref, signal, ...range }) {
      const task = await getTask(id)
      const { commit, baseCommit } = task.status ?? {}
      const wanted = ref === 'base' ? baseCommit : commit
      if (!isInjectablePath(path)) throw new TaskError('Invalid', `path: "${shown(path)}" is no path of a repository`)
      const found = wanted ? await findFile(task, wanted, path, signal) : undefined
      if (!found)
        throw missing(id, `has no file "${shown(path)}" in its ${ref === 'base' ? 'base' : 'result'}`, fileHint)
      return { sizeBytes: found.sizeBytes, content: byteRange(found.content, range) }
    },
    async apply(id, how) {
      const task = await getTask(id)
      if (bringHome) return bringHome.apply(task, how)
      throw new TaskError('ApplyNotPossible', 'this server has no work trees: it takes remote repositories only', {
        hint: `Take the change where your clone is: \`corral task apply ${id}\`.`,
      })
    },
    async artifacts(id) {
      const task = await getTask(id)
      const record = records.of(task.metadata.uid)
      const paths = new Map(artifactNames(task.spec.artifacts ?? []).map(({ name, path }) => [name, path]))
      const names = await record.list('artifact')
      return Promise.all(
        names.map(async (name) => {
          const path = paths.get(name)
          const size_bytes = (await record.find(`artifact/${name}`))?.sizeBytes ?? 0
          return { name, ...(path === undefined ? {} : { path }), size_bytes }
        }),
      )
    },
    async artifact(id, name) {
      const record = await recordOf(id)
      const part: RecordPart = `artifact/${name}`
      // A name that is none is refused by the record; for a reader both are the same.
      const found = (await record.list('artifact')).includes(name) ? await record.find(part) : undefined
      if (!found)
        throw missing(id, `has no artifact "${shown(name)}"`, `List them with \`corral task artifacts ${id}\`.`)
      return { sizeBytes: found.sizeBytes, content: record.read(part) }
    },
  }

  async function findFile(
    task: Stored<AgentTask>,
    commit: string,
    path: string,
    signal: AbortSignal,
  ): Promise<TreeFile | undefined> {
    const taskDirectory = await records.of(task.metadata.uid).workDirectory()
    return trees?.find({ taskDirectory, commit, path, signal })
  }
}

const fileHint = 'A task without a change keeps no files; the branch has them.'

function listed(files: ChangedFile[], truncated: boolean): ChangedFiles {
  const sum = (pick: (file: ChangedFile) => number): number => files.reduce((total, file) => total + pick(file), 0)
  return { files, additions: sum((file) => file.additions), deletions: sum((file) => file.deletions), truncated }
}

function missing(id: string, what: string, hint: string): TaskError {
  return new TaskError('FileNotFound', `task ${id} ${what}`, { hint })
}

const shown = (text: string): string => text.slice(0, 200)
