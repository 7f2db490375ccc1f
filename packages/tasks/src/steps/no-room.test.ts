import { taskWarning } from '@corral/protocol'
import { expect, it } from 'vitest'
import { sayingWhere } from './no-room.js'

const place = { taskName: 'task-a', repository: '/workspace/repo' }

it.each([
  {
    when: 'its sandbox is kept',
    isGone: false,
    says: "it is in the sandbox, which is kept until the task is deleted: `corral sandbox cp 'task-a:/workspace/repo/a b/big.bin' .`",
  },
  {
    when: 'its sandbox was evicted',
    isGone: true,
    says: 'it is gone with its sandbox, which was evicted for what it took of the disk',
  },
])('the warning of a file that found no room says where it is when $when', ({ isGone, says }) => {
  const warning = sayingWhere(taskWarning('NoRoomLeft', { path: 'a b/big.bin' }), { ...place, isGone })
  expect(warning).toMatchObject({ code: 'NoRoomLeft', path: 'a b/big.bin' })
  expect(warning.message).toContain(`(${says})`)
})

it('other warnings stay as they are', () => {
  const warning = taskWarning('LargeFile', { path: 'big.bin' })
  expect(sayingWhere(warning, { ...place, isGone: true })).toBe(warning)
})
