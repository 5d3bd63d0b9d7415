import fc from 'fast-check'
import t from 'tap'
import { scanCidr } from '../../src/dns/text/address.ts'
import { NetClasses } from '../../src/imports/net-classes.ts'

function classes(
  ...nets: readonly (readonly [map: string, cidr: string, value: string])[]
): NetClasses {
  const found = new NetClasses()
  for (const [map, cidr, value] of nets) found.define(map, scanCidr(cidr)!, value, 'f')
  return found
}

function lines(found: NetClasses): string[] {
  return found.lines().map(({ cidr, code }) => `${cidr} ${code}`)
}

t.test('networks with equal values in all maps share a code', async (t) => {
  const found = classes(
    ['a', '192.0.2.0/24', 'dublin'],
    ['a', '192.0.2.128/25', 'boston'],
    ['a', '2001:db8::/32', 'dublin'],
    ['b', '192.0.0.0/16', 'x y'],
    ['b', '198.51.100.0/24', 'x-y'],
    ['b', '192.0.2.0/24', '!'],
    ['b', '192.0.2.0/24', 'ignored'],
  )
  t.strictSame(lines(found), [
    '192.0.2.0/24 NET-DUBLIN',
    '192.0.2.128/25 NET-BOSTON',
    '2001:db8::/32 NET-DUBLIN-2',
    '192.0.0.0/16 NET-X-Y',
    '198.51.100.0/24 NET-X-Y-2',
  ])
  t.strictSame(found.codesOf('a', 'dublin'), ['NET-DUBLIN', 'NET-DUBLIN-2'])
  t.strictSame(found.codesOf('b', '!'), ['NET-DUBLIN', 'NET-BOSTON'])
  t.strictSame(found.codesOf('c', 'dublin'), [])
})

t.test('each address gets the value of its longest network of each map', async () => {
  const bits = fc.integer({ min: 0, max: 6 })
  const net = fc.tuple(fc.constantFrom('a', 'b'), fc.nat(63), bits, fc.constantFrom('1', '2', '3'))
  const check = (nets: readonly [string, number, number, string][]): boolean => {
    const texts = nets.map(([map, top, length, value]) => {
      const masked = (top << 2) & (0xff00 >> length) & 0xff
      return [map, `${masked}.0.0.0/${length}`, value] as const
    })
    const found = classes(...texts)
    const longest = (address: number, of: readonly { cidr: string; value: string }[]): string => {
      const matching = of.filter(({ cidr }) => {
        const [first = '', length = ''] = cidr.split('/')
        return (address ^ Number.parseInt(first, 10)) >> (8 - Number(length)) === 0
      })
      const bitsOf = ({ cidr }: { cidr: string }): number => Number(cidr.split('/')[1])
      return matching.toSorted((a, b) => bitsOf(b) - bitsOf(a))[0]?.value ?? ''
    }
    const all = found.lines().map(({ cidr, code }) => ({ cidr, value: code }))
    return ['a', 'b'].every((map) => {
      const own = texts.filter(([of]) => of === map).map(([, cidr, value]) => ({ cidr, value }))
      return Array.from({ length: 64 }, (_, i) => i << 2).every((address) => {
        const code = longest(address, all)
        const want = longest(address, own)
        const got = ['1', '2', '3'].filter((value) => found.codesOf(map, value).includes(code))
        return got.join() === want
      })
    })
  }
  fc.assert(fc.property(fc.array(net, { maxLength: 8 }), check), { numRuns: 200 })
})
