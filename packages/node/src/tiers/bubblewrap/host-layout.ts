import { lstatSync, readlinkSync, statSync } from 'node:fs'
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
]

/** Looks at the host once: which top-level names are links into /usr, and which harmless files of /etc exist. */
export function readHostLayout(): HostLayout {
  const links: { name: string; target: string }[] = []
  const directories: string[] = []
  for (const name of topLevel) {
    const status = lstatSync(`/${name}`, { throwIfNoEntry: false })
    if (status?.isSymbolicLink()) links.push({ name, target: readlinkSync(`/${name}`) })
    else if (status?.isDirectory()) directories.push(name)
  }
  return { links, directories, etc: etc.filter((path) => statSync(path, { throwIfNoEntry: false }) !== undefined) }
}
