import { artifactLimits, isInjectablePath, type TaskWarning, taskWarning } from '@corral/protocol'
import { errorCode } from '@corral/resources'
import { artifactNames } from '../results/artifact-names.js'
import { bounded } from './collect-work.js'
import type { StepContext } from './step.js'

/** Ways of the daemon to say that a path cannot be read as what it seemed to be. */
const unreadable = new Set([
  'NotFound',
  'IsADirectory',
  'NotADirectory',
  'PermissionDenied',
  'ArchiveFailed',
  'Invalid',
])

/**
 * Keeps the files a task names with its record, directories as tar archives. A file that is missing or too large fails
 * nothing: the warnings name it. Safe to repeat: what is kept is replaced.
 */
export async function takeArtifacts(context: StepContext): Promise<TaskWarning[]> {
  const { task, record, signal } = context
  const wanted = artifactNames(task.spec.artifacts ?? [])
  if (wanted.length === 0) return []
  const { daemon } = await context.openSandbox()
  const { repository } = await context.findWorkspace()
  const warnings: TaskWarning[] = []
  let leftBytes: number = artifactLimits.totalBytes
  for (const { path, name } of wanted) {
    const from = `${repository}/${path}`
    const info = isInjectablePath(path) ? await daemon.statFile(from, { signal }) : undefined
    if (!info) {
      warnings.push(taskWarning('ArtifactMissing', { path }))
      continue
    }
    const content =
      info.type === 'directory' ? daemon.getTar(from, { signal }) : daemon.readFileStream(from, { signal })
    const limit = Math.min(artifactLimits.fileBytes, leftBytes)
    try {
      const { sizeBytes } = await record.write(`artifact/${name}`, bounded(content, limit), { signal })
      leftBytes -= sizeBytes
    } catch (error) {
      const code = errorCode(error) ?? ''
      if (signal.aborted || (code !== 'ResultTooLarge' && !unreadable.has(code))) throw error
      warnings.push(taskWarning(code === 'ResultTooLarge' ? 'ArtifactTooLarge' : 'ArtifactMissing', { path }))
    }
  }
  return warnings
}
