import t from 'tap'
import { kuadrant } from '../../../src/plugins/kuadrant/setup.ts'
import { recordManifest } from '../../support/manifest.ts'
import { SetUp, setupError } from '../../support/setup.ts'

t.test('wrong maximums', async (t) => {
  const table = [
    ['endpoint-metrics 0', /endpoint-metrics must be "off", or from 1 to 100000, got 0/],
    ['endpoint-metrics 100001', /got 100001/],
    ['endpoint-metrics 1e3', /got 1e3/],
    ['endpoint-metrics -1', /got -1/],
    ['endpoint-metrics 1 2', /Wrong argument count/],
    ['endpoint-metrics\n endpoint-metrics', /endpoint-metrics appears twice/],
  ] as const
  for (const [properties, want] of table) {
    const corefile = `kuadrant {\n manifests .\n ${properties}\n}`
    t.match(setupError(kuadrant, corefile), want, properties)
  }
})

t.test(
  'endpoints are counted with the property, and by default where metrics are read',
  async (t) => {
    const directory = t.testdir({ 'a.yaml': recordManifest('a', '192.0.2.1') })
    const other = `{source="${directory}",zone="",owner="other",type="",endpoint="",tier=""}`
    for (const [property, directives, want] of [
      ['', [], undefined],
      ['', ['prometheus'], 0],
      ['endpoint-metrics', [], 0],
      ['endpoint-metrics off', ['prometheus'], undefined],
    ] as const) {
      const corefile = `kuadrant {\n manifests ${directory}\n ${property}\n}`
      const setUp = new SetUp(kuadrant, corefile, ['k.example.com.'], { above: directives })
      await setUp.start()
      const series = () => setUp.metric(`sextant_kuadrant_endpoint_answers_total${other}`)
      t.equal(await series(), want)
      await setUp.stop()
      t.equal(await series(), undefined)
    }
  },
)
