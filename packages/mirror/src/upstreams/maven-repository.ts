import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface MavenRepository {
  /** The name by which `settings.xml` gives its credentials. */
  readonly id: string
  readonly url: string
}

/**
 * The repository that Maven asks for plugins: the one it has built in, or the mirror of the user's settings. No command of its
 * own prints it. Offline and with an empty local repository Maven names it when it refuses to fetch. `undefined` where there is
 * no Maven.
 */
export async function mavenRepository(env: NodeJS.ProcessEnv): Promise<MavenRepository | undefined> {
  const directory = await mkdtemp(join(tmpdir(), 'corral-maven-'))
  const words = ['-B', '-o', `-Dmaven.repo.local=${join(directory, 'repository')}`, 'example:probe:1:probe']
  try {
    const said = await new Promise<string>((resolve) => {
      execFile('mvn', words, { cwd: directory, env, timeout: 120_000 }, (_error, stdout) => resolve(stdout))
    })
    const [, id, url] = /Cannot access (\S+) \((\S+)\) in offline mode/.exec(said) ?? []
    return id && url ? { id, url } : undefined
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}
