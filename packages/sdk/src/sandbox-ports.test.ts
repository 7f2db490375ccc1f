import { expect, it } from 'vitest'
import { listenersIn } from './sandbox-ports.js'

it('ports with a listener are told from those with connections alone', () => {
  const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:22B8 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 1 1 0 100 0 0 10 0
   1: 0100007F:C350 0100007F:22B8 01 00000000:00000000 00:00000000 00000000  1000        0 2 1 0 20 4 30 10 -1
  sl  local_address                         remote_address                        st tx_queue rx_queue
   0: 00000000000000000000000000000000:0D80 00000000000000000000000000000000:0000 0A 00000000:00000000 00:0 0
`
  expect(listenersIn(table)).toEqual(new Set([8888, 3456]))
})
