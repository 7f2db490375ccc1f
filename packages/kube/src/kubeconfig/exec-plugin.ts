import { execFile } from 'node:child_process'
import { dirname, isAbsolute, join, sep } from 'node:path'
import { KubeError } from '@corral/resources'
import type { Credentials } from '../cluster-access.js'
import { type Entry, invalid, isFields } from './kubeconfig-file.js'

const versions = ['client.authentication.k8s.io/v1', 'client.authentication.k8s.io/v1beta1']
const pluginTimeoutMs = 60_000

export interface ExecPlugin {
  readonly apiVersion: string
  readonly command: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly provideClusterInfo: boolean
  readonly installHint: string | undefined
}

/** The `exec` section of a user. A command with a slash is relative to the kubeconfig that names it. */
export function parseExecPlugin(user: Entry): ExecPlugin | undefined {
  const exec = user.fields.exec
  if (exec === undefined || exec === null) return undefined
  const problem = (what: string) => invalid(user.file, `user "${user.name}": exec ${what}`)
  if (!isFields(exec)) throw problem('is not a mapping')
  const { apiVersion, command, args, env, installHint } = exec
  if (typeof apiVersion !== 'string' || !versions.includes(apiVersion)) {
    throw problem(`has apiVersion ${String(apiVersion)}; known are ${versions.join(' and ')}`)
  }
  if (typeof command !== 'string' || command === '') throw problem('names no command')
  const isRelative = !isAbsolute(command) && command.includes(sep)
  return {
    apiVersion,
    command: isRelative ? join(dirname(user.file), command) : command,
    args: Array.isArray(args) ? args.map(String) : [],
    env: Object.fromEntries(
      (Array.isArray(env) ? env : []).filter(isFields).map((item) => [String(item.name), String(item.value)]),
    ),
    provideClusterInfo: exec.provideClusterInfo === true,
    installHint: typeof installHint === 'string' ? installHint : undefined,
  }
}

/** Runs the plugin once. Rejects with `CredentialsUnavailable`, carrying what it wrote to stderr and its install hint. */
export async function runExecPlugin(
  plugin: ExecPlugin,
  context: { origin: string; cluster: object; env: NodeJS.ProcessEnv },
): Promise<{ credentials: Credentials; expiresAt?: Date }> {
  const info = {
    apiVersion: plugin.apiVersion,
    kind: 'ExecCredential',
    spec: { interactive: false, ...(plugin.provideClusterInfo ? { cluster: context.cluster } : {}) },
  }
  const env = { ...context.env, ...plugin.env, KUBERNETES_EXEC_INFO: JSON.stringify(info) }
  const stdout = await run(plugin, env, context.origin)
  return parseExecCredential(stdout, plugin, context.origin)
}

/** Reads an ExecCredential; anything but a token or a certificate pair of the asked version is refused. */
export function parseExecCredential(
  stdout: string,
  plugin: Pick<ExecPlugin, 'apiVersion' | 'command'>,
  origin: string,
): { credentials: Credentials; expiresAt?: Date } {
  const refuse = (what: string, cause?: unknown) =>
    new KubeError('CredentialsUnavailable', `${origin}: ${plugin.command} ${what}`, { cause })
  let answer: unknown
  try {
    answer = JSON.parse(stdout)
  } catch (cause) {
    throw refuse('printed no JSON', cause)
  }
  if (!isFields(answer) || answer.kind !== 'ExecCredential') throw refuse('printed no ExecCredential')
  if (answer.apiVersion !== plugin.apiVersion) throw refuse(`answered in version ${String(answer.apiVersion)}`)
  const status = isFields(answer.status) ? answer.status : {}
  const { token, clientCertificateData: cert, clientKeyData: key, expirationTimestamp } = status
  const hasCertificate = typeof cert === 'string' && typeof key === 'string'
  if (typeof token !== 'string' && !hasCertificate) throw refuse('handed out neither a token nor a certificate')
  const expiresAt = typeof expirationTimestamp === 'string' ? new Date(expirationTimestamp) : undefined
  const credentials = {
    ...(typeof token === 'string' ? { authorization: `Bearer ${token}` } : {}),
    ...(hasCertificate ? { cert, key } : {}),
  }
  return expiresAt && !Number.isNaN(expiresAt.getTime()) ? { credentials, expiresAt } : { credentials }
}

function run(plugin: ExecPlugin, env: NodeJS.ProcessEnv, origin: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { env, timeout: pluginTimeoutMs, maxBuffer: 1024 * 1024, windowsHide: true }
    const child = execFile(plugin.command, [...plugin.args], options, (error, stdout, stderr) => {
      if (!error) return resolve(stdout)
      const detail = stderr.trim().slice(0, 2000) || error.message
      const hint = error.code === 'ENOENT' && plugin.installHint ? `\n${plugin.installHint}` : ''
      const message = `${origin}: credential plugin ${plugin.command} failed: ${detail}${hint}`
      reject(new KubeError('CredentialsUnavailable', message, { cause: error }))
    })
    child.stdin?.on('error', () => {}) // a plugin need not read its input
    child.stdin?.end()
  })
}
