import { renameSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'

/**
 * A unix socket that already listens, as a descriptor for a child to inherit. The child's copy keeps it alive; `release`
 * lets go of ours. Closing would also unlink the path it was bound to, so the file has moved to its real name by then.
 */
export async function inheritedListener(directory: string, name: string): Promise<{ fd: number; release: () => void }> {
  const server = createServer()
  const temporary = `${name}.new`
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(`s/${temporary}`, resolve)
  })
  renameSync(join(directory, temporary), join(directory, name))
  // Node has no public way to hand a listening descriptor to a foreign program.
  const { fd } = (server as unknown as { _handle: { fd: number } })._handle
  return { fd, release: () => server.close() }
}
