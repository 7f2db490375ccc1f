import { fileSizes } from '../tests/web/file-sizes.js'
import type { Recorder } from './common/result-file.js'

/** What a browser loads before the first page is there, and what it loads later. */
export function sizesOfFiles(recorder: Recorder): void {
  for (const { what, kilobytes, budget } of fileSizes())
    recorder.row({
      measure: what,
      unit: 'KB',
      values: { corral: kilobytes },
      required: `<= ${budget} KB`,
      isMet: kilobytes <= budget,
    })
}
