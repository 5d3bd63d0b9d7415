import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { check } from '../../../src/cli/check.ts'
import { recordManifest } from '../../support/manifest.ts'
import { recordOutput } from '../../support/recorded-output.ts'

const CONF = 'k.example.com {\n root {DIR}\n kuadrant {\n  manifests records\n }\n}\n'
const HOST = 'app.k.example.com'

/** A record of the host with one endpoint. */
function recordOf(name: string, id: string, allDown: string): string {
  return recordManifest(name, '192.0.2.1', HOST)
    .replace('spec:', `  annotations: { sextant.io/all-down: ${allDown} }\nspec:`)
    .replace('  - dnsName', `  - setIdentifier: ${id}\n    dnsName`)
}

t.test('a fallback endpoint that no record of the host has', async (t) => {
  const warnings = async (corefile: string, ...records: string[]): Promise<readonly string[]> => {
    const files = records.map((text, i) => [`${i}.yaml`, text])
    const directory = t.testdir({ records: Object.fromEntries(files), Corefile: '' })
    const { output, errors } = recordOutput(directory)
    writeFileSync(join(directory, 'Corefile'), corefile.replace('{DIR}', directory))
    t.equal(await check(['-conf', join(directory, 'Corefile')], output), 0)
    return errors.filter((line) => line.includes('all-down'))
  }
  const site = recordOf('site', 'site', 'sorry')
  const what = 'DNSRecord default/site: sextant.io/all-down names "sorry"'
  t.strictSame(await warnings(CONF, site), [
    `[WARNING] records/0.yaml:5: ${what}, but no endpoint of the host has that setIdentifier; open applies`,
  ])
  t.strictSame(await warnings(CONF, site, recordOf('sorry', 'sorry', 'sorry')), [])
  t.strictSame(await warnings(CONF, recordOf('site', 'site', 'open')), [])
  const ofBlock = (id: string): string => CONF.replace('records\n', `records\n  all-down ${id}\n`)
  t.match(await warnings(ofBlock('sitt'), recordOf('site', 'site', 'open')), [
    /^\[WARNING\] Corefile:5: plugin\/kuadrant: all-down names "sitt", but no endpoint has that setIdentifier; open applies; did you mean "?site/,
  ])
  t.strictSame(await warnings(ofBlock('site'), recordOf('site', 'site', 'open')), [])
  const peers = CONF.replace('kuadrant {', 'kuadrant {\n  site dublin\n  peer 192.0.2.7')
  t.strictSame(await warnings(peers, site), [], 'a peer may have it')
})
