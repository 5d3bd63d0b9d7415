import t from 'tap'
import { RRType } from '../../../src/dns/iana/types.ts'
import { signaturesMax } from '../../../src/signing/zone/signature-limit.ts'
import { ZoneImage } from '../../../src/zone/image/writer.ts'
import { wire } from '../../support/zone-text.ts'
import { SigningStage } from './signing-stage.ts'

/** Signatures of the apex: NS, SOA, DNSKEY, two of CDS and CDNSKEY, NSEC. A name has two: A, NSEC. */
const APEX_SIGNATURES = 8
const NAMES = 20

function put(stage: SigningStage, name: string, last: number): void {
  stage.put(`${name}.example.`, RRType.A, [Uint8Array.of(192, 0, 2, last)])
}

t.test(
  'a zone with too many signatures is an error that names a record and the limit',
  async (t) => {
    const max = APEX_SIGNATURES + 2 * NAMES
    const stage = new SigningStage({}, new ZoneImage(), max)
    stage.put('example.', RRType.NS, [wire('ns.other.')])
    for (let i = 0; i < NAMES; i++) put(stage, `n${i}`, i)
    await stage.publish()
    const published = stage.image.version
    // Edits, and names that replace others, need no more signatures.
    for (let i = 0; i < 3 * NAMES; i++) {
      put(stage, 'n0', 100 + i)
      stage.remove(`n${1 + i}.example.`, RRType.A)
      put(stage, `n${NAMES + i}`, i)
      await stage.publish()
    }
    t.ok(stage.image.version > published)
    const { version } = stage.image
    put(stage, 'other', 1)
    const want =
      /^(other|n\d+)\.example\. needs 2 signatures, and its zone then more than 48: use fewer/
    await t.rejects(stage.publish(), { message: want })
    t.equal(stage.image.version, version, 'the version before is served')
    await t.rejects(stage.publish(), { message: want }, 'again, of the whole zone')
    stage.remove('other.example.', RRType.A)
    await stage.publish()
    t.ok(stage.image.version > version, 'without the name, it is signed')
  },
)

t.test('the limit fits the memory', async (t) => {
  t.ok(signaturesMax() > 0)
  t.ok(signaturesMax() <= 8 * 1024 * 1024)
})
