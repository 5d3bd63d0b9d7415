import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { scanName } from '../../../src/dns/name/name.ts'
import { RecordPlaces } from '../../../src/publish/build/locate.ts'
import { recordManifest } from '../../support/manifest.ts'

const first = recordManifest('a', '192.0.2.1')
const second = recordManifest('b', '192.0.2.2')
const endpoint = { key: 'default/b', owner: scanName('b.k.example.com.')!, type: 1 }

t.test('files are read again up to a bound', (t) => {
  const file = join(t.testdir({ 'records.yaml': first + second }), 'records.yaml')
  const line = first.split('\n').length
  const places = new Map([['default/b', { file, line, index: 1 }]])
  const octets = first.length + second.length
  const lineOf = (octetsMax?: number) =>
    new RecordPlaces(places, octetsMax).endpoint(endpoint)?.line
  const exact = lineOf()
  t.ok(exact !== undefined && exact > line, `line ${exact}`)
  t.equal(lineOf(octets), exact)
  t.equal(lineOf(octets - 1), line, 'the first line of the document')
  rmSync(file)
  t.equal(lineOf(), line, 'the file is gone')
  mkdirSync(file)
  t.equal(lineOf(), line, 'it is a directory')
  t.end()
})
