import t from 'tap'
import { RRType } from '../../../src/dns/iana/types.ts'
import { OfferedVersions } from '../../../src/publish/zone/offered-versions.ts'
import { ZoneVersions } from '../../../src/xfr/zone-versions.ts'
import { ZoneImage } from '../../../src/zone/image/writer.ts'
import { wire } from '../../support/zone-names.ts'

t.test('a compaction moves the versions of zones that do not change, too', async (t) => {
  const image = new ZoneImage()
  const versions = new ZoneVersions()
  const offered = new OfferedVersions(image, versions, versions.source())
  const zones = ['a.example.', 'b.example.'].map((text) => {
    const apex = wire(text)
    return { id: image.addZone(apex), apex, serial: 1 }
  })
  const [busy, idle] = zones as [(typeof zones)[0], (typeof zones)[0]]
  image.publish()
  offered.offer(zones)
  const puts: [serial: number, changed: number | undefined][] = []
  versions.subscribe(({ zone, version, changed }) => {
    if (zone === idle.apex) puts.push([version!.serial, changed?.length])
  })
  const change = (): void => {
    const rdata = [Uint8Array.of(busy.serial)]
    image.putRRset(busy.id, busy.apex, { type: RRType.TXT, ttlSeconds: 1, rdata })
    busy.serial++
    image.publish()
  }
  change()
  offered.offer(zones)
  t.same(puts, [])
  offered.note(idle.id, idle.apex, RRType.TXT)
  change()
  image.compact()
  offered.offer(zones)
  t.same(puts, [[1, 0]])
  for (const { apex } of zones) t.equal(versions.find(apex)?.buffer, image.handle.buffer)
  idle.serial++
  offered.offer(zones)
  t.same(puts.at(-1), [2, 1], 'what was noted counts for the next version')
})
