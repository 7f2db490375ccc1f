import { type Fields, ForeignFileProblem, type ForeignSetup, isFields, nothing, shellWords } from './foreign-file.js'
import { withoutComments } from './json-with-comments.js'

function fieldsOf(text: string): Fields {
  let value: unknown
  try {
    value = JSON.parse(withoutComments(text))
  } catch (error) {
    throw new ForeignFileProblem(`is no JSON: ${(error as Error).message}`, { cause: error })
  }
  if (!isFields(value)) throw new ForeignFileProblem('must be an object')
  return value
}

/** `.cursor/environment.json`: `install` and `start`; `terminals` are of an editor. */
export function readCursorEnvironment(text: string): ForeignSetup {
  const file = fieldsOf(text)
  const found = nothing()
  if (typeof file.install === 'string' && file.install.trim() !== '') found.setup.push(file.install)
  if (typeof file.start === 'string' && file.start.trim() !== '') found.start.push(file.start)
  const known = ['install', 'start', 'name', 'user', '$schema']
  found.leftOut = Object.keys(file).filter(
    (field) => !known.includes(field) || (['install', 'start'].includes(field) && typeof file[field] !== 'string'),
  )
  return found
}

/** Fields of a devcontainer that concern an editor, or how a container is reached from outside. */
const devcontainerNotes = [
  ...['name', '$schema', 'customizations', 'remoteUser', 'containerUser', 'forwardPorts', 'portsAttributes'],
  ...['otherPortsAttributes', 'updateRemoteUserUID', 'waitFor', 'userEnvProbe', 'shutdownAction', 'overrideCommand'],
  ...['workspaceFolder', 'postAttachCommand', 'extensions', 'settings'],
]
const devcontainerUsed = ['onCreateCommand', 'updateContentCommand', 'postCreateCommand', 'postStartCommand']

/**
 * `devcontainer.json`: the commands that prepare the container, and variables with plain values. What would run on the host
 * (`initializeCommand`), mount or grant anything is never used.
 */
export function readDevcontainer(text: string): ForeignSetup {
  const file = fieldsOf(text)
  const found = nothing()
  for (const field of ['onCreateCommand', 'updateContentCommand', 'postCreateCommand'])
    found.setup.push(...lifecycle(file[field]))
  found.start.push(...lifecycle(file.postStartCommand))
  const left = new Set(
    Object.keys(file).filter((field) =>
      devcontainerUsed.includes(field) ? !isCommand(file[field]) : !devcontainerNotes.includes(field),
    ),
  )
  for (const field of ['containerEnv', 'remoteEnv']) {
    const { [field]: variables } = file
    left.delete(field)
    for (const [name, value] of Object.entries(isFields(variables) ? variables : {})) {
      const isLiteral = typeof value === 'string' && !value.includes('${') && /^[A-Za-z_]\w*$/.test(name)
      if (isLiteral && name !== 'PATH' && name !== 'HOME' && !name.startsWith('CORRAL_')) found.env[name] = value
      else left.add(`${field}.${name}`)
    }
  }
  found.leftOut = [...left]
  return found
}

const isCommand = (value: unknown): boolean =>
  typeof value === 'string' || Array.isArray(value) || (isFields(value) && Object.values(value).every(isCommand))

/** A command line, its words, or several under names, which would run at once there and run one after the other here. */
function lifecycle(value: unknown): string[] {
  if (typeof value === 'string') return value.trim() === '' ? [] : [withWorkspace(value)]
  if (Array.isArray(value)) return value.length === 0 ? [] : [value.map(wordWithWorkspace).join(' ')]
  return isFields(value) ? Object.values(value).flatMap(lifecycle) : []
}

const workspaceVariable = /\$\{(?:containerWorkspaceFolder|localWorkspaceFolder)\}/g

const withWorkspace = (command: string): string => command.replaceAll(workspaceVariable, '$PWD')

/** No shell reads the word there: in it the variable alone may stand outside of quotes that keep the shell away. */
const wordWithWorkspace = (word: unknown): string => {
  const pieces = String(word).split(workspaceVariable)
  return pieces.length === 1
    ? shellWords([word])
    : pieces.map((piece) => (piece === '' ? '' : shellWords([piece]))).join('"$PWD"')
}
