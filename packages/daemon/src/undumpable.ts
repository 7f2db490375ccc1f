import { existsSync, statSync } from 'node:fs'

/**
 * Keeps code of the same user from reading this process's memory, environment and descriptors and from tracing it: what
 * set-up was given as secrets went through here, and the agent, who comes later, must not find it. `library` is compiled at
 * the platform's set-up (`undumpable.c`); without a compiler it is not there, and the process stays as it is. What this
 * process starts is not affected. Answers whether it worked.
 */
export function makeUndumpable(library: string): boolean {
  if (!existsSync(library)) return false
  try {
    process.dlopen({ exports: {} }, library)
  } catch {
    // Node misses the registration of an addon. The library has done its work while it was loaded, or could not be.
  }
  return isUndumpable()
}

/** The kernel gives the files of such a process to root. Cannot tell for root itself. */
function isUndumpable(): boolean {
  return statSync('/proc/self/environ').uid !== process.getuid?.()
}
