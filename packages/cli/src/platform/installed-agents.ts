import { access, constants } from 'node:fs/promises'
import { join } from 'node:path'

/** Where a sandbox of the default template finds programs: its PATH over this machine's own, then our agents. */
const systemDirectories = ['/usr/local/bin', '/usr/bin', '/bin']

/** Whether a sandbox that starts now has this program. */
export async function isInstalled(program: string, agentsDirectory: string): Promise<boolean> {
  const places = [join(agentsDirectory, 'bin'), ...systemDirectories].map((directory) => join(directory, program))
  const found = await Promise.all(
    places.map((path) =>
      access(path, constants.X_OK).then(
        () => true,
        () => false,
      ),
    ),
  )
  return found.includes(true)
}
