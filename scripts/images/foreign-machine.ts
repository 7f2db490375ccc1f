import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export type Architecture = 'x64' | 'arm64'

/** What Debian and OCI call it. */
export const debianName: Readonly<Record<Architecture, 'amd64' | 'arm64'>> = { x64: 'amd64', arm64: 'arm64' }

/** How the kernel knows a program of that machine: ELF, 64 bits, little endian, and the number of the machine. */
const programs: Readonly<Record<Architecture, { emulator: string; machine: string }>> = {
  x64: { emulator: 'qemu-x86_64-static', machine: '3e' },
  arm64: { emulator: 'qemu-aarch64-static', machine: 'b7' },
}

/**
 * Runs a program in which those of another machine run as well, emulated. The kernel is told so in user, mount and process
 * namespaces of its own: the machine we are on never learns of it.
 */
export function runForeign(
  cache: string,
  architecture: Architecture,
  command: readonly string[],
  env: NodeJS.ProcessEnv,
): void {
  const { emulator, machine } = programs[architecture]
  const path = join(debianFiles(cache, 'qemu-user-static'), 'usr/bin', emulator)
  const scratch = mkdtempSync(join(tmpdir(), 'corral-foreign-'))
  const elf = '\\x7fELF\\x02\\x01\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x02\\x00'
  const mask = '\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\x00\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xfe\\xff\\xff\\xff'
  const inside = `read _ < "$SCRATCH/go"
mkdir "$SCRATCH/formats" && mount -t binfmt_misc none "$SCRATCH/formats"
printf '%s' ':corral:M::${elf}\\x${machine}\\x00:${mask}:${path}:F' > "$SCRATCH/formats/register"
exec "$@"`
  // The numbers of users are those outside: what is written belongs to whom it says.
  const outside = `mkfifo "$SCRATCH/go"
unshare --user --mount --pid --fork --mount-proc --kill-child sh -c "$INSIDE" sh "$@" & pid=$!
until [ "$(readlink /proc/$pid/ns/user)" != "$(readlink /proc/self/ns/user)" ]; do sleep 0.05; done
echo '0 0 65536' > /proc/$pid/uid_map && echo '0 0 65536' > /proc/$pid/gid_map && echo > "$SCRATCH/go"
wait $pid`
  try {
    execFileSync('sh', ['-c', outside, 'sh', ...command], {
      env: { ...env, SCRATCH: scratch, INSIDE: inside },
      stdio: ['ignore', 'ignore', 'inherit'],
      timeout: 60 * 60_000,
    })
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

/** The directory with the files of a Debian package, fetched and unpacked into the cache: nothing is installed here. */
export function debianFiles(cache: string, name: string): string {
  const place = join(cache, name)
  if (existsSync(join(place, 'usr'))) return place
  mkdirSync(place, { recursive: true })
  execFileSync('apt-get', ['download', name], { cwd: place, stdio: 'ignore', timeout: 600_000 })
  for (const file of readdirSync(place).filter((each) => each.endsWith('.deb'))) {
    execFileSync('dpkg', ['-x', join(place, file), place], { timeout: 120_000 })
    rmSync(join(place, file))
  }
  return place
}
