import { expect, it } from 'vitest'
import { readHostLayout } from './host-layout.js'

it('shows a sandbox what Java and Maven start with, and nothing beside it that may hold passwords', () => {
  const { etc } = readHostLayout()
  const ofJava = etc.filter((path) => /maven|java/.test(path))
  expect(
    ofJava.filter(
      (path) => !/^\/etc\/(maven\/(m2\.conf|logging)|java-\d+-openjdk\/(security|\w+\.properties))$/.test(path),
    ),
  ).toEqual([])
})
