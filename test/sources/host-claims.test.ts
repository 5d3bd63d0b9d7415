import fc from 'fast-check'
import t from 'tap'
import { scanName } from '../../src/dns/name/name.ts'
import { ROOT_KEY } from '../../src/records/host-share.ts'
import { lowerNameKey } from '../../src/records/validate/names.ts'
import { HostClaims } from '../../src/sources/host-claims.ts'

t.test('others at a name are found in any order', async (t) => {
  const names = ['app', 'x.app', 'y.x.app'].map((name) => lowerNameKey(scanName(`${name}.`)!))
  const name = fc.integer({ min: 0, max: 2 })
  const member = fc.record({
    name,
    namespace: fc.constantFrom('a', 'b', 'c'),
    key: fc.integer({ min: 0, max: 5 }),
    isGone: fc.boolean(),
  })
  await fc.assert(
    fc.asyncProperty(
      fc.array(member),
      fc.constantFrom('a', 'b', 'd'),
      name,
      async (steps, own, at) => {
        const claims = new HostClaims()
        for (const { name, namespace, key, isGone } of steps) {
          const one = {
            namespace,
            key: `${namespace}/${key}`,
            createdSeconds: 1,
            isClaim: true,
            apex: ROOT_KEY,
          }
          if (isGone) claims.remove(names[name]!, one.key)
          else claims.add(names[name]!, one)
        }
        const around = [...claims.membersFrom(names[at]!), ...claims.membersAbove(names[at]!)]
        const others = around.some(({ namespace }) => namespace !== own)
        t.equal(claims.hasOthers(names[at]!, own), others)
        const isContested = new Set(around.map(({ namespace }) => namespace)).size > 1
        t.equal(claims.isContested(names[at]!), isContested)
      },
    ),
  )
})
