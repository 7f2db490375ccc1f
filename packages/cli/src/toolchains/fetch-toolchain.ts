import type { ToolName } from '@corral/protocol'
import type { FetchToolchain } from './registries/fetched-toolchain.js'
import { fetchGo } from './registries/go-toolchain.js'
import { fetchNode } from './registries/node-package.js'
import { fetchUv } from './registries/uv-wheel.js'

/** Toolchains that package registries publish. */
export const fetchedTools: Readonly<Partial<Record<ToolName, FetchToolchain>>> = {
  go: fetchGo,
  node: fetchNode,
  uv: fetchUv,
}
