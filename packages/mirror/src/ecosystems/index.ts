import type { Ecosystem } from '../ecosystem.js'
import { crates } from './crates.js'
import { go } from './go.js'
import { maven } from './maven.js'
import { npm } from './npm.js'
import { pypi } from './pypi.js'

/** Every protocol the mirror speaks; the name is the first part of its paths. */
export const ecosystems: readonly Ecosystem[] = [npm, pypi, go, crates, maven]
