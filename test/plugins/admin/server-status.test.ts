import t from 'tap'
import { statusSource } from '../../../src/plugins/admin/server-status.ts'
import { STATUS } from '../../support/admin-site.ts'
import { FakeClock } from '../../support/setup.ts'

t.test('a status that takes long is composed a tenth of the time', async (t) => {
  const clock = new FakeClock()
  let composed = 0
  let takesMs = 300
  const status = statusSource(clock, () => {
    composed++
    clock.pass(takesMs)
    return STATUS
  })
  for (let i = 0; i < 100; i++) status()
  t.equal(composed, 1)
  clock.pass(2999)
  status()
  t.equal(composed, 1)
  clock.pass(1)
  status()
  t.equal(composed, 2)
  takesMs = 0
  clock.pass(3000)
  for (let i = 0; i < 100; i++) status()
  t.equal(composed, 102, 'one that takes no time is always new')
})
