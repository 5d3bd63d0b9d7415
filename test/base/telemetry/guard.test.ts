import t from 'tap'
import { guarding } from '../../../src/base/telemetry/guard.ts'
import { createLogger } from '../../../src/base/telemetry/log.ts'

t.test('a fault costs one run and one line', async (t) => {
  const lines: string[] = []
  const log = createLogger(
    'plugin/x',
    (line) => lines.push(line),
    () => false,
  )
  const contained = guarding(log, 'Reloading f')
  const line = (fault: string) =>
    `[ERROR] plugin/x: Reloading f failed, the last valid state is kept: ${fault}`
  const boom = (): never => {
    throw new Error('boom')
  }
  await contained(boom)
  await contained(boom)
  t.strictSame(lines.splice(0), [line('boom')], 'the same fault is logged once')
  await contained(() => Promise.reject('late'))
  t.strictSame(lines.splice(0), [line('late')], 'what comes late, and is no Error')
  let ran = 0
  await contained(async () => void ran++)
  await contained(boom)
  t.strictSame([ran, lines], [1, [line('boom')]], 'logged again after a success')
})
