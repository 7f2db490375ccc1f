import { CliError } from '../cli-error.js'
import { dataDirWords } from '../output/next-commands.js'
import {
  type DataDirectory,
  dataDirectoryOf,
  makeDataDirectory,
  type ReadyRecord,
  readReady,
} from '../platform/data-directory.js'
import { answers } from './answers.js'
import { platformLogOf, startInBackground } from './start-platform.js'
import type { PlatformAddress } from './tasks.js'

export interface FindOptions {
  dataDir?: string | undefined
  url?: string | undefined
  token?: string | undefined
}

/** Checked before it is used: a typing error is no platform that does not answer. */
function addressFrom(url: string): string {
  if (URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)) return url.replace(/\/+$/, '')
  throw new CliError(`"${url}" is not the address of a platform`, {
    exitCode: 2,
    hint: 'Give one such as http://127.0.0.1:35639, with --url or CORRAL_URL.',
  })
}

/** The running platform: named by flags or environment, else the one of the data directory. Undefined when none answers. */
export async function findPlatform(
  options: FindOptions,
  env: NodeJS.ProcessEnv = process.env,
): Promise<(PlatformAddress & Partial<ReadyRecord>) | undefined> {
  const url = options.url ?? env.CORRAL_URL
  if (url) {
    const address = addressFrom(url)
    const token = options.token ?? env.CORRAL_TOKEN
    if (!token)
      throw new CliError(`${options.url ? '--url is given' : 'CORRAL_URL is set'}, but no token`, {
        exitCode: 2,
        hint: 'Give the token that `corral up` of that platform printed, with --token or CORRAL_TOKEN.',
      })
    return { url: address, token }
  }
  const ready = readReady(directoryOf(options, env))
  return ready && (await answers(ready.url)) ? ready : undefined
}

export async function requirePlatform(options: FindOptions): Promise<PlatformAddress & Partial<ReadyRecord>> {
  const platform = await findPlatform(options)
  if (platform) return platform
  throw new CliError('no platform is running', {
    hint: `Start one with \`corral up -d${dataDirWords(options.dataDir)}\`, or set CORRAL_URL and CORRAL_TOKEN.`,
    exitCode: 3,
  })
}

const idleMinutes = 10

/** Finds the platform or starts one in the background that ends itself when nothing uses it. */
export async function ensurePlatform(
  options: FindOptions,
  say: (text: string) => void,
): Promise<PlatformAddress & Partial<ReadyRecord>> {
  const found = await findPlatform(options)
  if (found) return found
  const directory = directoryOf(options, process.env)
  makeDataDirectory(directory.path)
  say(
    `starting a platform in the background (it ends itself after ${idleMinutes} idle minutes; log: ${platformLogOf(directory)})`,
  )
  return startInBackground(directory, ['--idle-exit', `${idleMinutes}m`])
}

function directoryOf(options: FindOptions, env: NodeJS.ProcessEnv): DataDirectory {
  return dataDirectoryOf(options, env)
}
