import { expect, it } from 'vitest'
import { checkedPartName } from '../records/task-records.js'
import { artifactNames } from './artifact-names.js'

it.each<{ when: string; paths: string[]; names: string[] }>([
  { when: 'last parts differ, they are the names', paths: ['out/report.html', 'a.txt'], names: ['report.html', 'a.txt'] },
  { when: 'last parts are the same, the paths are', paths: ['a/log', 'b/log'], names: ['a-log', 'b-log'] },
  { when: 'paths meet as names, a number tells them apart', paths: ['a/log', 'b/log', 'a-log'], names: ['a-log', 'b-log', '2-a-log'] },
  { when: 'a name is one of the platform’s own', paths: ['kept.bundle'], names: ['2-kept.bundle'] },
  { when: 'a name begins with a dot or has letters no file name takes', paths: ['.nyc', 'ä ö'], names: ['nyc', 'file'] },
  { when: 'a name ends like one that is being written', paths: ['x.partial'], names: ['x-partial'] },
  { when: 'a name is very long', paths: [`d/${'x'.repeat(300)}.log`], names: [`${'x'.repeat(96)}.log`] },
])('when $when', ({ paths, names }) => {
  expect(artifactNames(paths)).toEqual(paths.map((path, index) => ({ path, name: names[index] })))
  for (const name of names) expect(checkedPartName(`artifact/${name}`)).toBe(name)
})
