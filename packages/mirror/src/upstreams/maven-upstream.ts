import { join } from 'node:path'
import type { Upstream } from '../ecosystem.js'
import type { HostSettings } from './host-settings.js'
import type { MavenRepository } from './maven-repository.js'
import { basicAuthorization, registryFrom } from './registry-url.js'

/** Asking Maven starts a JVM and takes seconds: its answer is kept until the settings files change. */
const answers = new WeakMap<HostSettings, { settings: string; repository: Promise<MavenRepository | undefined> }>()

/** The repository Maven itself would ask, with the user name and password that `settings.xml` has for it. */
export async function mavenUpstream(host: HostSettings): Promise<Upstream> {
  const settings = (await host.readFile(join(host.home, '.m2', 'settings.xml'))) ?? ''
  const former = answers.get(host)
  const repository = former?.settings === settings ? former.repository : host.mavenRepository()
  answers.set(host, { settings, repository })
  const found = await repository
  const registry = registryFrom(found?.url, found && authorization(settings, found.id, host.env))
  return { registries: registry ? [registry] : [] }
}

/** `{…}` is a password that Maven has encrypted with a master key of its own: it is of no use here. */
function authorization(settings: string, id: string, env: HostSettings['env']): string | undefined {
  for (const [, body = ''] of settings.replace(/<!--[\s\S]*?-->/g, '').matchAll(/<server>([\s\S]*?)<\/server>/g)) {
    if (element(body, 'id', env) !== id) continue
    const [user, password] = [element(body, 'username', env), element(body, 'password', env)]
    if (user && password && !/^\{.*\}$/.test(password)) return basicAuthorization(user, password)
  }
  return undefined
}

function element(body: string, name: string, env: HostSettings['env']): string | undefined {
  const text = new RegExp(`<${name}>\\s*([^<]*?)\\s*</${name}>`).exec(body)?.[1]
  return text
    ?.replace(/\$\{env\.(\w+)\}/g, (_, variable) => env[variable] ?? '')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&apos;', "'")
    .replaceAll('&amp;', '&')
}
