import t, { type Test } from 'tap'
import { Random } from '../../../src/base/random.ts'
import { RRType } from '../../../src/dns/iana/types.ts'
import { Response } from '../../../src/dns/message/response.ts'
import { RecordZone } from '../../../src/publish/build/record-zone.ts'
import { ImageSink } from '../../../src/publish/zone/image-sink.ts'
import { SteeringTable } from '../../../src/steering/table.ts'
import { ZoneImage } from '../../../src/zone/image/writer.ts'
import { ZoneAnswerer } from '../../../src/zone/lookup/answer.ts'
import { TestHealth } from '../../support/test-health.ts'
import { question, wire } from '../../support/zone-names.ts'
import { APEX, added, type Given, record } from '../record-zone-stage.ts'

/** A zone in an image, and the addresses and the extended error of its answers. */
function serve(t: Test) {
  const image = new ZoneImage()
  const id = image.addZone(APEX)
  const health = new TestHealth()
  const parts = { locator: undefined, random: new Random(1) }
  const table = new SteeringTable({ ...parts, onError: (reason) => t.fail(reason) })
  const ns = { owner: APEX, type: RRType.NS, ttlSeconds: 60, setIdentifier: '', weight: undefined }
  const records = new RecordZone({
    apex: APEX,
    isLocalForm: false,
    fixed: [],
    defaultNs: { ...ns, codes: [], isDefault: false, rdata: [wire('ns1.k.example.com.')] },
    sink: new ImageSink(image, id, table),
    health,
    onConflict: (text) => t.fail(text),
    onOut: () => {},
  })
  const answerer = new ZoneAnswerer(image.reader(), table.steerer())
  const ask = (name: string) => {
    image.publish()
    const query = question(name, RRType.A)
    const response = new Response()
    response.reset(query)
    answerer.answer(query, response)
    const addresses = Array.from({ length: response.count }, (_, i) => {
      const at = response.rdataOffset[i]!
      return response.rdataBytes[i]!.slice(at, at + 4).join('.')
    })
    const code = response.edeCode
    return { addresses, code, text: Buffer.from(response.edeText).toString() }
  }
  return { records, health, ask }
}

const NAME = 'x.k.example.com.'

t.test('replies note that health is ignored, with the content and its digest unchanged', (t) => {
  const { records, health, ask } = serve(t)
  const addresses = ['192.0.2.1', '192.0.2.2']
  records.apply(added({ endpoints: [`x.k.example.com A ${addresses.join()}`] }))
  const { digest } = records
  const [record] = [...records.holders.records()]
  const notice = (down: readonly string[]) => {
    health.put('n/app', down)
    records.apply([{ before: record, after: record }])
    return ask(NAME)
  }
  t.match(ask(NAME), { addresses, code: -1 })
  t.match(notice(addresses), { addresses, code: 0, text: /health is ignored/ }, 'all at once')
  t.equal(records.digest, digest)
  t.match(notice([]), { addresses, code: -1 }, 'the note ends')
  t.match(notice(['192.0.2.1']), { addresses: ['192.0.2.2'], code: -1 })
  t.match(notice(addresses), { addresses, code: 0 })
  t.end()
})

t.test(
  'replies note endpoints of a silent site, with the content and its digest unchanged',
  (t) => {
    for (const weights of ['', ' weight=1'] as const) {
      const { records, ask } = serve(t)
      const theirs = (isSilent: boolean): Given => {
        return { site: 'east', isSilent, endpoints: [`x.k.example.com A 192.0.2.2${weights} id=b`] }
      }
      const ours: Given = { endpoints: [`x.k.example.com A 192.0.2.1${weights} id=a`] }
      const [heard, silent] = [record(theirs(false)), record(theirs(true))]
      records.apply([...added(ours), { before: undefined, after: heard }])
      const { digest } = records
      const replies = () => {
        const all = Array.from({ length: 100 }, () => ask(NAME))
        const texts = all.map(({ addresses, code }) => `${addresses.join()} ${code}`)
        return [...new Set(texts)].sort()
      }
      const whole = '192.0.2.1,192.0.2.2'
      const [before, after] =
        weights === ''
          ? [[`${whole} -1`], [`${whole} 3`]]
          : [
              ['192.0.2.1 -1', '192.0.2.2 -1'],
              ['192.0.2.1 -1', '192.0.2.2 3'],
            ]
      t.strictSame(replies(), before)
      records.apply([{ before: heard, after: silent }])
      t.strictSame(replies(), after)
      t.equal(records.digest, digest)
      records.apply([{ before: silent, after: heard }])
      t.strictSame(replies(), before, 'the note ends')
    }
    t.end()
  },
)

t.test('an endpoint that a heard site has too is not noted', (t) => {
  const { records, ask } = serve(t)
  const endpoints = ['x.k.example.com A 192.0.2.1']
  records.apply(added({ endpoints }, { site: 'east', isSilent: true, endpoints }))
  t.match(ask(NAME), { addresses: ['192.0.2.1'], code: -1 })
  t.end()
})
