import { fstatSync } from 'node:fs'
import { readdir, readFile, readlink } from 'node:fs/promises'

/** Programs whose first argument says more than their own name. */
const interpreters = /^(node|deno|bun|python[\d.]*|ruby|perl|php|java|sh|bash|dash)$/

/** So many processes are looked at; a pod with more is not worth the time. */
const mostProcesses = 4_096

/**
 * The process of a network namespace that has this UDP port, in words such as `node install.mjs`; undefined where it is gone
 * or may not be looked at. Never rejects. Arguments beyond the script stay away: they may hold what is secret.
 */
export async function findAskingProcess(netFd: number, port: number, proc = '/proc'): Promise<string | undefined> {
  try {
    const namespace = `net:[${fstatSync(netFd).ino}]`
    const pids = (await readdir(proc)).filter((name) => /^\d+$/.test(name)).slice(-mostProcesses)
    const inside: string[] = []
    for (const pid of pids) if ((await linkOf(`${proc}/${pid}/ns/net`)) === namespace) inside.push(pid)
    const socket = socketOf(await tablesOfAny(proc, inside), port)
    for (const pid of socket === undefined ? [] : inside)
      if (await holds(proc, pid, `socket:[${socket}]`)) return processWords(await readFile(`${proc}/${pid}/cmdline`))
  } catch {
    // It ended meanwhile, or is not ours to look at: the name is told without it.
  }
  return undefined
}

const linkOf = (path: string): Promise<string | undefined> => readlink(path).catch(() => undefined)

/** They are the same for all processes of a namespace, any of which may end meanwhile. */
async function tablesOfAny(proc: string, pids: readonly string[]): Promise<string> {
  for (const pid of pids) {
    const found = await tables(proc, pid)
    if (found.trim() !== '') return found
  }
  return ''
}

async function tables(proc: string, pid: string): Promise<string> {
  const read = (name: string): Promise<string> => readFile(`${proc}/${pid}/net/${name}`, 'utf8').catch(() => '')
  return `${await read('udp')}\n${await read('udp6')}`
}

async function holds(proc: string, pid: string, socket: string): Promise<boolean> {
  const directory = `${proc}/${pid}/fd`
  for (const fd of await readdir(directory).catch(() => []))
    if ((await linkOf(`${directory}/${fd}`)) === socket) return true
  return false
}

/** The inode of the socket with this local port, from the kernel's table. Pure. */
export function socketOf(table: string, port: number): string | undefined {
  const wanted = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  for (const line of table.split('\n')) {
    const fields = line.trim().split(/\s+/)
    const [, local = '', , , , , , , , inode] = fields
    if (local.endsWith(wanted) && inode !== undefined && /^[1-9]\d*$/.test(inode)) return inode
  }
  return undefined
}

/** `node install.mjs` for an interpreter and its script, else the program. Pure; what it is given comes from a sandbox. */
export function processWords(cmdline: Buffer): string | undefined {
  const [program = '', script = ''] = cmdline.subarray(0, 4096).toString('utf8').split('\0')
  const name = baseName(program)
  if (name === undefined) return undefined
  const scriptName = interpreters.test(name) && !script.startsWith('-') ? baseName(script) : undefined
  return scriptName === undefined ? name : `${name} ${scriptName}`
}

function baseName(path: string): string | undefined {
  const name = path.slice(path.lastIndexOf('/') + 1)
  return /^[\w.@+-]{1,64}$/.test(name) ? name : undefined
}
