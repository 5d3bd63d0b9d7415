import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { collectProblems } from '../../../src/base/telemetry/problems.ts'
import { kuadrant } from '../../../src/plugins/kuadrant/setup.ts'
import { recordManifest } from '../../support/manifest.ts'
import { SetUp } from '../../support/setup.ts'
import { until } from '../../support/until.ts'

const ZONE = 'k.example.com'
/** The property of each file, and how the problem calls its contents. */
const FILES: ReadonlyMap<string, string> = new Map([
  ['serials {DIR}/serials', 'serials'],
  ['snapshot {DIR}/snapshot', 'the snapshot'],
  ['probe {DIR}/probes', 'probe states'],
  ['slow-start 1m {DIR}/slow-start', 'slow starts'],
  ['shift {DIR}/shift', 'shifts'],
  ['peer-cache {DIR}/peers', 'peer cache'],
])

t.test('files in a folder that is missing are problems from the start', async (t) => {
  const directory = t.testdir({ records: { 'a.yaml': recordManifest('a', '192.0.2.1', ZONE) } })
  const lines = [...FILES.keys()].map((line) => line.replace('{DIR}', join(directory, 'state')))
  const start = async (): Promise<SetUp> => {
    const properties = ['site a', 'peer 127.0.0.1:1', `manifests ${directory}/records`, ...lines]
    const setUp = new SetUp(kuadrant, `kuadrant {\n ${properties.join('\n ')}\n}`, [`${ZONE}.`])
    await setUp.start()
    return setUp
  }
  const problemsOf = ({ problemReports }: SetUp) => {
    return collectProblems(problemReports).listed.filter(({ kind }) => kind === 'state-file')
  }
  const bad = await start()
  await until(() => problemsOf(bad).length === FILES.size, 'the problems')
  const found = problemsOf(bad).map(({ reason }) => reason)
  for (const contents of FILES.values()) {
    const text = new RegExp(`^${contents} in .*/state/.* cannot be written: ENOENT.*, after a rest`)
    t.equal(found.filter((reason) => text.test(reason)).length, 1, contents)
    t.equal(
      bad.readiness.some(({ check }) => check().includes('ENOENT')),
      false,
    )
  }
  t.equal(bad.lines.filter((line) => line.includes('cannot be written')).length, FILES.size)
  await bad.stop()
  mkdirSync(join(directory, 'state'))
  const good = await start()
  t.strictSame(problemsOf(good), [])
  await good.stop()
})
