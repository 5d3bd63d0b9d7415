import type { Test } from 'tap'
import { type Clock, systemClock } from '../../../src/base/clock.ts'
import { systemTimers, type Timers } from '../../../src/base/timers.ts'
import { unpackRecord } from '../../../src/records/pack.ts'
import { ManifestSource } from '../../../src/sources/manifests/manifest-source.ts'
import { backdate } from '../../support/backdate.ts'
import { until } from '../../support/until.ts'

export async function open(
  t: Test,
  directory: string,
  timers: Timers = systemTimers,
  clock: Clock = systemClock,
) {
  const lines: string[] = []
  const note = (text: string) => lines.push(text)
  const log = { debug: note, info: note, warning: note, error: note }
  backdate(directory)
  const source = new ManifestSource({ directory, log, clock, timers })
  await source.load()
  await source.follow()
  t.teardown(() => source.close())
  const address = (name: string): string | undefined => {
    const record = source.find(`default/${name}`)
    return record && unpackRecord(record.packed).endpoints[0]?.rdata[0]?.join('.')
  }
  const becomes = (name: string, want: string | undefined) =>
    until(() => address(name) === want, `${name} to be ${want}`)
  return { source, lines, address, becomes }
}
