import { lstatSync, readdirSync, readlinkSync, statSync } from 'node:fs'
import type { HostLayout } from './profile.js'

const topLevel = ['bin', 'sbin', 'lib', 'lib32', 'lib64', 'libx32']
const etc = [
  '/etc/ssl',
  '/etc/pki',
  '/etc/ca-certificates',
  '/etc/alternatives',
  '/etc/ld.so.cache',
  '/etc/ld.so.conf',
  '/etc/ld.so.conf.d',
  '/etc/nsswitch.conf',
  '/etc/localtime',
  '/etc/mime.types',
  '/etc/services',
  '/etc/protocols',
  '/etc/bash.bashrc',
  '/etc/profile',
  '/etc/inputrc',
  '/etc/terminfo',
  // What Maven starts with. Its settings.xml beside it may hold passwords of repositories.
  '/etc/maven/m2.conf',
  '/etc/maven/logging',
]
/** What Debian's Java does not start or open a connection without. `management` beside them may hold passwords. */
const java = ['security', 'net.properties', 'logging.properties']

/** Looks at the host once: which top-level names are links into /usr, and which harmless files of /etc exist. */
export function readHostLayout(): HostLayout {
  const links: { name: string; target: string }[] = []
  const directories: string[] = []
  for (const name of topLevel) {
    const status = lstatSync(`/${name}`, { throwIfNoEntry: false })
    if (status?.isSymbolicLink()) links.push({ name, target: readlinkSync(`/${name}`) })
    else if (status?.isDirectory()) directories.push(name)
  }
  const isThere = (path: string): boolean => statSync(path, { throwIfNoEntry: false }) !== undefined
  return { links, directories, etc: [...etc, ...javaSettings()].filter(isThere) }
}

function javaSettings(): string[] {
  const versions = readdirSync('/etc').filter((name) => /^java-\d+-openjdk$/.test(name))
  return versions.flatMap((version) => java.map((name) => `/etc/${version}/${name}`))
}
