import { environmentFilePath } from '@corral/protocol'
import type { Environment } from '@corral/resources'
import { parseEnvironmentFile } from '../environment/environment-file.js'
import { shellWord } from '../environment/task-environment.js'
import type { PreparedRepository } from '../repository/repository.js'
import { TaskError } from '../task-error.js'

/** Why there is nothing to build. There may be a file all the same: one that needs nothing installed, or whose parts do. Pure. */
export function nothingToBuild(
  file: PreparedRepository['environmentFile'],
  { part, repository, ref }: Environment['spec'],
): TaskError {
  const { parts = [] } = file ? parseEnvironmentFile(file.text, environmentFilePath, part) : {}
  const [first] = parts
  const words = [repository.url, ...(ref ? ['--ref', ref] : []), '--part', first ?? '']
  const hint = !file
    ? 'Write one with `corral env init`, and commit it.'
    : part === undefined && first !== undefined
      ? `Its parts may have one: \`corral env build ${words.map(shellWord).join(' ')}\`.`
      : `${environmentFilePath} has no \`setup\`: tasks start without a build.`
  return new TaskError('EnvironmentInvalid', 'the repository has no set-up, so there is nothing to build', { hint })
}
