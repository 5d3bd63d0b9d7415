import t from 'tap'
import { debug } from '../../../src/plugins/debug/setup.ts'
import { SetUp, setupError } from '../../support/setup.ts'

t.test('turns debugging on', async (t) => {
  t.equal(new SetUp(debug, 'debug').block.debug, true)
})

t.test('takes no argument', async (t) => {
  t.match(
    setupError(debug, 'debug off'),
    "Wrong argument count or unexpected line ending after 'off'",
  )
})
