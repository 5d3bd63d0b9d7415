import t from 'tap'
import { Random } from '../../src/base/random.ts'
import { EdeCode, RRType } from '../../src/dns/iana/index.ts'
import { Query } from '../../src/dns/message/query.ts'
import { Response } from '../../src/dns/message/response.ts'
import { STICKY_DEFAULT } from '../../src/steering/rules.ts'
import { stickySeed } from '../../src/steering/sticky.ts'
import { isEncodedSteering } from '../../src/steering/verify-encoded.ts'
import { Choice } from '../../src/zone/image/types.ts'
import { wire } from '../support/zone-names.ts'
import { candidates, createTable, type Endpoint } from './stage.ts'

const OWNER = wire('k.example.com.')

t.test('a reply says that health is ignored', async (t) => {
  const weighted: Endpoint[] = [{ weight: 1 }, { weight: 2 }]
  const table: { name: string; endpoints: Endpoint[]; answers?: number; isSticky?: boolean }[] = [
    { name: 'one endpoint', endpoints: [{}] },
    { name: 'weights', endpoints: weighted },
    { name: 'sticky', endpoints: weighted, isSticky: true },
    { name: 'several answers', endpoints: [...weighted, { weight: 3 }], answers: 2 },
    { name: 'GEO', endpoints: [{ code: 'US' }, { isDefault: true }] },
  ]
  for (const { name, endpoints, answers, isSticky = false } of table) {
    for (const ignoresHealth of [true, false]) {
      const steering = createTable().table
      const set = candidates(endpoints).map((one, i) => {
        return isSticky ? { ...one, seed: stickySeed(OWNER, `${i}`) } : one
      })
      const sticky = isSticky ? STICKY_DEFAULT : undefined
      const words = steering.compose(set, RRType.A, { sticky, answers, ignoresHealth })
      await steering.built()
      if (words === undefined) {
        t.notOk(ignoresHealth, name)
        continue
      }
      const keyCounts = steering.policies.map((keys) => keys.length)
      t.ok(isEncodedSteering(words, 0, words.length, endpoints.length, keyCounts), name)
      const [query, response] = [new Query(), new Response()]
      steering.steerer(new Random(1)).choose(query, response, words, 0, new Choice())
      t.equal(response.edeCode, ignoresHealth ? EdeCode.OTHER : -1, `${name}: ${ignoresHealth}`)
      if (ignoresHealth) t.match(Buffer.from(response.edeText).toString(), 'health is ignored')
    }
  }
})
