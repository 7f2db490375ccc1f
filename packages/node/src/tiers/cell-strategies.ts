import type { CradleConfig } from '../cradle/protocol/messages.js'
import type { CellStrategy } from '../cradle/server/cell-strategy.js'
import type { Tier } from '../isolation/isolation.js'
import { bubblewrapCells } from './bubblewrap/bubblewrap-cells.js'
import { processCells } from './process/process-cells.js'

/** The inside of each tier: a new tier is a folder and a line here and in `isolations`. */
export const cellStrategies: Readonly<Record<Tier, (config: CradleConfig) => CellStrategy>> = {
  bubblewrap: bubblewrapCells,
  process: processCells,
}
