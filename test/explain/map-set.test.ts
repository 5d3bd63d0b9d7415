import t from 'tap'
import { RRType } from '../../src/dns/iana/types.ts'
import { findRRset } from '../../src/explain/find-rrset.ts'
import { servedSet } from '../../src/explain/map/map-set.ts'
import { encodeSteering } from '../../src/steering/encode.ts'
import { ZoneImage } from '../../src/zone/image/writer.ts'
import { ZoneAnswerer } from '../../src/zone/lookup/answer.ts'
import { signToyZone } from '../support/toy-signer.ts'
import { wire } from '../support/zone-names.ts'

t.test('of signatures and proofs, clients get those of the default answers', async (t) => {
  const image = new ZoneImage()
  const zone = image.addZone(wire('e.'))
  const rdata = [1, 2, 3].map((octet) => Uint8Array.of(192, 0, 2, octet))
  const outcome = (...rdataIndexes: number[]) => ({ weight: 1, ttlSeconds: 60, rdataIndexes })
  const steering = encodeSteering(0, [[outcome(0), outcome(1)], [outcome()], [outcome(2)]])
  image.putRRset(zone, wire('e.'), { type: RRType.SOA, ttlSeconds: 60, rdata: [rdata[0]!] })
  image.putRRset(zone, wire('a.e.'), { type: RRType.A, ttlSeconds: 60, rdata, steering })
  image.publish()
  signToyZone({ image, zone, apex: 'e.' }, { keys: 2, isHashed: false })
  const answerer = new ZoneAnswerer(image.reader())
  const served = (type: number): { tiers: number[][]; records: number } => {
    const found = findRRset({ directive: 'kuadrant', answerer }, wire('a.e.'), type)!
    const set = servedSet(found, type, undefined, undefined)
    const tiers = set.tiers.map((tier) => tier.flatMap(({ rdataIndexes }) => rdataIndexes))
    return { tiers, records: set.rdata.length }
  }
  t.strictSame(served(RRType.A), { tiers: [[0, 1], [], [2]], records: 3 })
  // Two keys, three answers with records, and two proofs.
  t.strictSame(served(RRType.RRSIG), { tiers: [[0, 1, 6, 7]], records: 10 })
  t.strictSame(served(RRType.NSEC), { tiers: [[0]], records: 2 })
})
